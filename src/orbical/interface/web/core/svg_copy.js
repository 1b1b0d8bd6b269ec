// A copy of an SVG that stands by itself: colors and type resolved, nothing left to the page.

const STYLED = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "fill-opacity",
  "stroke-opacity",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
  "paint-order",
  "dominant-baseline",
  "visibility",
];

/** Two decimals are finer than any screen. */
export function rounded(number) {
  return String(Math.round(number * 100) / 100);
}

/** A copy of an SVG with its colors resolved, at its place. */
export function standaloneCopy(svg, box, origin) {
  const copy = svg.cloneNode(true);
  const ours = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLED) ours[i].setAttribute(name, style.getPropertyValue(name));
    ours[i].removeAttribute("class");
  });
  copy.querySelectorAll("[data-transient]").forEach((element) => element.remove());
  const place = {
    x: rounded(box.left - origin.left),
    y: rounded(box.top - origin.top),
    width: rounded(box.width),
    height: rounded(box.height),
  };
  for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value);
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
  copy.removeAttribute("style");
  return copy;
}
