/** A picture of a plot that stands by itself, without the page's variables. */

import { node } from "./svg.js";

const RESOLVED = ["fill", "stroke", "font-family"];

/** A copy of an SVG with the colors it has now, over its canvas where it has one. */
export function snapshotOf(svg, canvas = null) {
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  const copy = svg.cloneNode(true);
  const [theirs, ours] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  theirs.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of RESOLVED) {
      if (element.getAttribute(name)?.includes("var(")) ours[i].setAttribute(name, style.getPropertyValue(name));
    }
  });
  copy.querySelectorAll("[data-transient]").forEach((element) => element.remove());
  copy.removeAttribute("style");
  copy.removeAttribute("aria-hidden");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (canvas) copy.prepend(node("image", { width, height, href: canvas.toDataURL("image/png") }));
  const probe = document.createElement("span");
  probe.style.color = "var(--panel, #ffffff)";
  svg.parentNode.append(probe);
  copy.prepend(node("rect", { width, height, fill: getComputedStyle(probe).color }));
  probe.remove();
  return copy;
}
