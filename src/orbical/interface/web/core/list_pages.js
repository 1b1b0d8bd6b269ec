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
