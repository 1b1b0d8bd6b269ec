// The views by the names that tasks give them. A new one is one file and one line here.

export * as atoms from "./atoms.js";
export * as bars from "./bars.js";
export * as boxes from "./boxes.js";
export * as window from "./window.js";
export * as quiver from "./flow.js";
export * as image from "./image.js";
export * as intervals from "./intervals.js";
export * as key_points from "./key_points.js";
export * as maps from "./maps.js";
export * as pair from "./pair.js";
export * as png from "./png.js";
export * as point_classes from "./point_classes.js";
export * as points from "./points.js";
export * as signal from "./signal.js";
export * as text from "./text.js";
export * as texts from "./texts.js";
export * as values from "./values.js";
export * as volume from "./volume.js";
