// A row that scrolls sideways fades at the ends beyond which there is more of it.

/** Mark a row as `more-before` and `more-after`; `renew` where it holds other parts. */
export function attachEdgeFade(row) {
  function look() {
    const left = row.scrollWidth - row.clientWidth - row.scrollLeft;
    row.classList.toggle("more-before", row.scrollLeft > 1);
    row.classList.toggle("more-after", left > 1);
  }

  function renew() {
    sized.disconnect();
    for (const one of [row, ...row.children]) sized.observe(one);
  }

  const sized = new ResizeObserver(look); // it hears of each part once, too
  row.addEventListener("scroll", look, { passive: true });
  renew();
  return { renew, destroy: () => sized.disconnect() };
}
