// The sections in the order of Tab, each with its place on the page.

import * as aggregate from "./aggregate.js";
import * as bounds from "./bounds.js";
import * as calibration from "./calibration.js";
import * as detail from "./detail.js";
import * as filters from "./filters.js";
import * as headings from "./headings.js";
import * as embedding from "./embedding.js";
import * as individual from "./individual.js";
import * as input from "./input.js";
import * as list from "./list.js";
import * as menus from "./menus.js";
import * as pinned from "./pinned.js";
import * as readout from "./readout.js";

/** Put all sections into the shell; returns them by name. */
export function createSections(shell, app) {
  const made = {};
  const put = (name, module, el) => (made[name] = module.createSection(el, app));
  put("menus", menus, shell.menus);
  put("filters", filters, shell.filters);
  put("headings", headings, shell);
  put("aggregate", aggregate, shell.overview);
  put("embedding", embedding, shell.overview);
  put("list", list, shell.overview.querySelector(".embedding .body"));
  if (app.state.calibration !== false) put("calibration", calibration, shell.overview);
  if (app.state.bounds) put("bounds", bounds, shell.overview);
  put("individual", individual, shell.detail);
  put("readout", readout, shell.detail);
  put("input", input, shell.detail);
  put("detail", detail, shell.detail);
  put("pinned", pinned, shell.strip);
  shell.overview.classList.toggle("with-bounds", Boolean(made.bounds));
  shell.overview.classList.toggle("without-calibration", !made.calibration);
  return made;
}
