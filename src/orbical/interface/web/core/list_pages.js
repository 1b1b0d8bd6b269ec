// The sorted subset, of which only the pages in sight are asked for, one at a time.

export const PAGE = 200;

/** Keep pages of the list; `onchange` is called when one arrives. */
export function createListPages(app, onchange) {
  let held = new Map();
  let about = { total: 0, title: "", unit: "", error: "" };
  let asked = null;
  let stale = false; // the selection has changed: the first page will come by itself

  function ask(page) {
    if (stale || asked !== null || held.has(page) || page * PAGE >= about.total) return;
    asked = page;
    app.request("list", { start: page * PAGE, count: PAGE });
  }

  function receive(answer) {
    asked = null;
    if (!answer.error && answer.start > 0 && stale) return;
    if (answer.error || answer.start === 0) [held, stale] = [new Map(), false];
    about = { total: answer.total ?? 0, title: answer.title ?? "", unit: answer.unit ?? "", error: answer.error ?? "" };
    if (!answer.error) {
      const { samples, values } = answer.arrays;
      held.set(answer.start / PAGE, { samples: Array.from(samples.data), values: Array.from(values.data) });
    }
    onchange(answer.start === 0 || Boolean(answer.error));
  }

  function at(index) {
    const page = held.get(Math.floor(index / PAGE));
    const place = index % PAGE;
    return page && place < page.samples.length ? { sample: page.samples[place], value: page.values[place] } : null;
  }

  function indexOf(sample) {
    for (const [page, { samples }] of held) {
      const place = samples.indexOf(sample);
      if (place >= 0) return page * PAGE + place;
    }
    return -1;
  }

  const fields = ["order", "of", "metric", "reference", "filter", "subset"];
  const stops = [app.on("list", receive), app.store.subscribe(fields, () => (stale = true))];
  return {
    about: () => about,
    at,
    indexOf,
    /** Ask for what is missing among some places; nearest page first. */
    want: (first, last) => {
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) ask(page);
    },
    destroy: () => stops.forEach((stop) => stop()),
  };
}

const TALLEST = 8e6;
const SPARE = 6; // lines drawn beyond both ends

/** The height of the whole list in pixels. */
export function wholeHeight(total, perLine, lineHeight) {
  return Math.min(TALLEST, Math.ceil(total / perLine) * lineHeight);
}

/** The items in sight, and where the first of them is drawn. */
export function itemsInSight({ total, perLine, lineHeight, scrollTop, height }) {
  const lines = Math.ceil(total / perLine);
  const whole = wholeHeight(total, perLine, lineHeight);
  const seen = Math.ceil(height / lineHeight);
  const share = whole > height ? scrollTop / (whole - height) : 0;
  const top = lines * lineHeight <= whole ? scrollTop / lineHeight : share * Math.max(0, lines - seen);
  const first = Math.max(0, Math.floor(top) - SPARE);
  const last = Math.min(lines, Math.floor(top) + seen + SPARE);
  return {
    first: first * perLine,
    last: Math.min(total, last * perLine),
    offset: scrollTop - (top - first) * lineHeight,
  };
}

/** How far to scroll so that an item is in sight; null where it is already. */
export function scrollTo(index, { total, perLine, lineHeight, scrollTop, height }) {
  const lines = Math.ceil(total / perLine);
  const whole = wholeHeight(total, perLine, lineHeight);
  const line = Math.floor(index / perLine);
  if (lines * lineHeight > whole) {
    const seen = Math.ceil(height / lineHeight);
    const top = (scrollTop / (whole - height)) * (lines - seen);
    if (line >= top && line < top + seen - 1) return null;
    return (Math.min(line, lines - seen) / (lines - seen)) * (whole - height);
  }
  if (line * lineHeight < scrollTop) return line * lineHeight;
  return (line + 1) * lineHeight > scrollTop + height ? (line + 1) * lineHeight - height : null;
}
