// The sections by name, each a file with `createSection`.

export * as aggregate from "./aggregate.js";
export * as bounds from "./bounds.js";
export * as calibration from "./calibration.js";
export * as detail from "./detail.js";
export * as filters from "./filters.js";
export * as headings from "./headings.js";
export * as embedding from "./embedding.js";
export * as individual from "./individual.js";
export * as input from "./input.js";
export * as list from "./list.js";
export * as menus from "./menus.js";
export * as pinned from "./pinned.js";
export * as readout from "./readout.js";
