// Files that the page hands to the reader.

import { h } from "./dom.js";

/** Offer bytes as a download. */
export function download(blob, filename) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: filename });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** An SVG as text. */
export function svgBlob(svg) {
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
}

/** An SVG as PNG at some times its size, through a canvas. */
export function pngBlob(svg, scale) {
  return new Promise((resolve, reject) => {
    const picture = new Image();
    const url = URL.createObjectURL(svgBlob(svg));
    picture.onload = () => {
      const [width, height] = ["width", "height"].map((name) => scale * Number(svg.getAttribute(name)));
      const canvas = h("canvas", { width, height });
      canvas.getContext("2d").drawImage(picture, 0, 0, width, height);
      URL.revokeObjectURL(url);
      canvas.toBlob(resolve, "image/png");
    };
    picture.onerror = () => reject(new Error("Could not render the figure"));
    picture.src = url;
  });
}

/** Copy text; where the clipboard is refused, the text is selected in a prompt-like field. */
export function copyText(text) {
  if (navigator.clipboard?.writeText) return navigator.clipboard.writeText(text);
  return Promise.reject(new Error("Clipboard access was denied"));
}
