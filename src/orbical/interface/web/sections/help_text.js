// What the page says about itself: one sentence per section, the keys, and the words it uses.

export const hints = {
  aggregate:
    "The metric at each position of the orbit, averaged over the subset, for every model. " +
    "A model that treats all positions alike gives an even ring, or one even color. Drag along it to move everything.",
  embedding:
    "Each point is one sample; points lie close together when the models respond alike along the orbit. " +
    "Click a point to select it. Draw a lasso around several to make them the subset.",
  list: "The samples of the subset in order. Arrow keys walk through them.",
  individual:
    "The metric along the orbit of the selected sample. Drag along it: the input is moved there and the models answer.",
  input: "The selected sample, moved to the current position of the orbit. This is what the models see.",
  detail:
    "What each model answers at the current position. The true class is marked; a small tick on a bar is the " +
    "model's consensus, its average over the whole orbit.",
  calibration:
    "Can the confidence be trusted? Answers are grouped by their confidence; on the diagonal a confidence of 0.8 is " +
    "right 8 times in 10. Below it the model is over-confident.",
  bounds:
    "What the symmetry allows: an equivariant model gives one answer per orbit, so its accuracy has a ceiling and " +
    "its calibration error lies in the shaded interval.",
};

/** How each drawing of an orbit is read. */
const DRAWINGS = {
  circle: "The angle is the rotation, counter-clockwise from the top; the radius is the metric.",
  plane: "Each cell is a shift: dx to the right, dy upwards; the cross marks the unmoved input.",
  slices:
    "Each disc holds the rotations about the axes of one plane: the direction is the axis, the distance from the " +
    "center the angle, 90° on the inner ring and 180° on the rim.",
  ball:
    "Each disc shows the rotations as vectors: the direction is the axis, the length the angle, 90° on the inner " +
    "ring and 180° on the rim. Large points lie near the plane of the disc.",
  tiles: "Each tile is one transformation: the letter shows what becomes of an F, an arrow to the left time reversed.",
  line: "From left to right along the orbit.",
};

/** A hint with how the plot of a layout is read. */
export function hintFor(hint, kind) {
  return [hint, DRAWINGS[kind]].filter(Boolean).join(" ");
}

export const tour = [
  [
    "Aggregate",
    "the metric over the orbit for all models. Dents show where a model fails. Choose classes above to see one at a time.",
  ],
  [
    "Embedding",
    "all samples, arranged by how the models respond along the orbit. Clusters share a pattern of failure. Hover to see a sample, click to select it, drag with the lasso to keep a subset: aggregate and calibration follow it.",
  ],
  ["List", "the worst, the best or the most variable samples first."],
  ["One sample", "its own orbit plot. Drag along the orbit and watch the input turn and the answers change."],
  ["Input and answer", "what the models see, and what they answer, at the current position."],
  [
    "Calibration",
    "confidence against accuracy for the subset, at this position or over the whole orbit; the error (ECE) with its 95 % interval, and the value that a perfectly calibrated model would show with as many samples.",
  ],
  [
    "Bounds",
    "shown where the scan has orbit ids: the ceiling of the accuracy and the sharp interval of the calibration error.",
  ],
];

/** @type {[string[], string][]} */
export const keyTable = [
  [["Tab"], "next section or control"],
  [["1", "…", "7"], "jump to a section"],
  [
    ["←", "→", "↑", "↓"],
    "along the orbit, in an orbit plot; through the samples, in the list; to the nearest point, in the embedding",
  ],
  [["Home"], "back to the unmoved input, in an orbit plot"],
  [["[", "]"], "previous and next sample of the list"],
  [["m", "M"], "next and previous metric"],
  [["r"], "compare with the labels or with the consensus"],
  [["o"], "order of the list: worst, best, most variable"],
  [["c"], "color of the embedding"],
  [["+", "−"], "in the embedding: a subset around the selected sample, wider or narrower"],
  [["Esc"], "clear the lasso; close a menu"],
  [["k"], "calibration here or over the whole orbit"],
  [["d"], "dark or light"],
  [["x"], "export"],
  [["?"], "this help"],
];

export const glossary = [
  [
    "orbit",
    "everything a sample becomes when every transformation of the group is applied to it, such as a digit at all angles",
  ],
  ["score", "how good an answer is; for classes, the probability given to the true class"],
  ["confidence", "the largest probability among the classes: how sure the model is, right or wrong"],
  [
    "consensus",
    "a model's average answer over the orbit. It needs no labels: compare with it to see where a model contradicts itself",
  ],
  ["invariance gap", "how much a model's answer varies over the orbit; 0 for an invariant model"],
  ["action defect", "the error made by moving the data itself (resampling pixels), not by the model"],
  ["ECE", "expected calibration error: the mean distance between confidence and accuracy"],
  ["by chance", "the ECE that a perfectly calibrated model would show with as many samples, by chance alone"],
  ["ESD", "expected squared difference: a calibration error without bins"],
  ["over-confident", "more sure than right: confidence above accuracy"],
  ["embedding", "a map of all samples in two dimensions (PCA, ICA, ISOMAP, t-SNE, UMAP)"],
  ["live", "the models run while you drag. Without models the page snaps to the positions that were scanned"],
];
