// The sections in the order of Tab, each with its place on the page.

import * as sections from "./all.js";

/** Put all sections into the shell; returns them by name. */
export function createSections(shell, app) {
  const made = {};
  const put = (el, ...names) => names.forEach((name) => (made[name] = sections[name].createSection(el, app)));
  put(shell.menus, "menus");
  put(shell.filters, "filters");
  put(shell, "headings");
  put(shell.overview, "aggregate", "embedding");
  put(shell.overview.querySelector(".embedding .body"), "list");
  if (app.state.calibration !== false) put(shell.overview, "calibration");
  if (app.state.bounds) put(shell.overview, "bounds");
  put(shell.detail, "individual", "readout", "input", "detail");
  put(shell.strip, "pinned");
  shell.overview.classList.toggle("with-bounds", Boolean(made.bounds));
  shell.overview.classList.toggle("without-calibration", !made.calibration);
  return made;
}
