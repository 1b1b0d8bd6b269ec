// Which items of a long list are in sight. A list of a million rows is taller than browsers draw, so that
// beyond a height places and pixels are in proportion only.

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
