// What the page says about itself: one sentence per section, the keys, and the words it uses.
import { button, h, show, uid, write } from "../core/dom.js";

const INDIVIDUAL =
  "The metric along the orbit of the selected sample. Drag to transform the input and update the predictions.";

export const hints = {
  aggregate:
    "The metric at each position on the orbit, averaged over the subset, for every model. An invariant model shows " +
    "an even ring or a uniform color. Drag to change the position in all plots.",
  embedding:
    "Each point is one sample; nearby points have similar model responses along the orbit. Click a point to select " +
    "it, or draw a lasso to select a subset.",
  list: "The samples in the subset, sorted. Use the arrow keys to move through them.",
  individual: INDIVIDUAL,
  individual_in_report: `${INDIVIDUAL} The models in this report run as you drag; fine steps need orbical view.`,
  input: "The selected sample, transformed to the current position. This is what the models see.",
  detail:
    "The prediction of each model at the current position. The true class is marked; the small tick on each bar is " +
    "the consensus, the model's average over the orbit.",
  pinned:
    "Samples side by side at the same position of their orbits, with the prediction of each model. Click one to " +
    "select it.",
  calibration:
    "How well the confidence is calibrated. Predictions are binned by confidence: on the diagonal, a confidence of " +
    "0.8 means 80 % are correct; below it, the model is overconfident.",
  bounds:
    "What the symmetry allows: an invariant model makes one prediction per orbit, so its accuracy has a ceiling and " +
    "its calibration error lies in the shaded interval.",
};

/** How to read each orbit layout. */
const LAYOUTS = {
  circle: "The angle is the rotation, counterclockwise from the top; the radius is the metric.",
  plane: "Each cell is one shift: dx to the right, dy up. The cross marks the original input.",
  slices:
    "Each disc shows the rotations about the axes in one plane: the direction is the axis and the distance from the " +
    "center is the angle, 90° at the inner ring and 180° at the rim.",
  ball:
    "Each disc shows rotation vectors: the direction is the axis and the length is the angle, 90° at the inner ring " +
    "and 180° at the rim. Larger points are closer to the plane of the disc.",
  tiles: "Each tile is one transformation. The letter shows how it transforms an F; a left arrow means reversed time.",
  line: "The orbit runs from left to right.",
};

/** A hint, with how to read the plot of an orbit layout. */
export function hintFor(hint, kind) {
  return [hint, LAYOUTS[kind]].filter(Boolean).join(" ");
}

export const tour = [
  [
    "Aggregate",
    "The metric over the orbit for all models. Dips show where a model fails. Filter by any column in the bar above.",
  ],
  [
    "Embedding",
    "All samples, arranged by how the models respond along the orbit. Clusters share a failure pattern. Hover to preview a sample, click to select it, or draw a lasso to restrict the aggregate, the list and the calibration to a subset.",
  ],
  ["List", "The samples of the subset, sorted by the metric or by a column; search them, or show them as a grid."],
  [
    "Individual",
    "The orbit of the selected sample. Drag along it to transform the input and see the predictions change.",
  ],
  [
    "Pinned",
    "Press p, or pin, to keep the selected sample at hand. Up to eight stand side by side and follow the position.",
  ],
  ["Input and prediction", "What the models see and what they predict at the current position."],
  [
    "Calibration",
    "Confidence versus accuracy for the subset, at the current position or over the whole orbit: the expected calibration error (ECE) with its 95 % interval, and the ECE expected by chance.",
  ],
  ["Bounds", "Shown if the scan has orbit ids: the accuracy ceiling and the sharp interval of the calibration error."],
];

/** @type {[string[], string][]} */
export const keyTable = [
  [["Tab"], "next section or control"],
  [["1", "…", "7"], "go to a section"],
  [
    ["←", "→", "↑", "↓"],
    "orbit plot: move along the orbit; list: change the sample; embedding: go to the nearest point",
  ],
  [["Home"], "orbit plot: return to the original input"],
  [["[", "]"], "previous and next sample in the list"],
  [["m", "M"], "next and previous metric"],
  [["r"], "compare with labels or consensus"],
  [["o"], "sort order of the list"],
  [["c"], "color of the embedding"],
  [["+", "−"], "embedding: grow or shrink a subset around the selected sample"],
  [["Ctrl+Z", "Ctrl+Shift+Z"], "undo and redo a change of the subset"],
  [["p"], "pin the selected sample beside others, or take its pin away"],
  [["t"], "tag the selected sample"],
  [["y"], "diagnosis: where it fails, what would help, what if"],
  [["f"], "enlarge a section to the whole window, and back"],
  [["+", "−", "0"], "enlarged input or prediction: zoom in, out, fit the window"],
  [["Esc"], "leave the enlarged section; clear the subset; close a menu"],
  [["k"], "calibration at this position or over the whole orbit"],
  [["d"], "dark or light theme"],
  [["x"], "export"],
  [["b"], "findings: bookmark this view, or go to one"],
  [[",", "."], "previous and next finding"],
  [["?"], "show this help"],
];

export const glossary = [
  ["orbit", "all transformed versions of a sample under the group, such as a digit at every angle"],
  ["score", "how good a prediction is; for classification, the probability of the true class"],
  ["confidence", "the largest class probability, whether or not the prediction is correct"],
  [
    "consensus",
    "a model's average prediction over the orbit. It needs no labels: compare with it to see where a model contradicts itself",
  ],
  [
    "prediction changes",
    "the share of samples whose prediction is not the same at all positions, and of pairs of positions that disagree",
  ],
  ["invariance gap", "how much a model's prediction varies over the orbit; 0 for an invariant model"],
  ["action defect", "the error caused by transforming the data itself (such as resampling pixels), not by the model"],
  ["ECE", "expected calibration error: the mean absolute difference between confidence and accuracy"],
  ["by chance", "the ECE of a perfectly calibrated model with the same number of samples"],
  ["ESD", "expected squared difference: a calibration error without bins"],
  ["overconfident", "confidence higher than accuracy"],
  ["embedding", "a two-dimensional map of all samples (PCA, ICA, Isomap, t-SNE or UMAP)"],
  ["live", "the models run as you drag. Without models, the page snaps to the scanned positions"],
];

/** A modal dialog with three parts. */
export function createHelp(root) {
  const id = uid("help");
  const close = button("Close", () => dialog.close(), { class: "close" });
  const pairs = (list) =>
    h(
      "dl",
      {},
      list.map(([word, text]) => h("div", {}, h("dt", {}, word), h("dd", {}, text))),
    );
  const keys = h(
    "table",
    {},
    h(
      "tbody",
      {},
      keyTable.map(([key, text]) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            key.map((one) => (one === "…" ? "…" : h("kbd", {}, one))),
          ),
          h("td", {}, text),
        ),
      ),
    ),
  );
  const dialog = h(
    "dialog",
    { class: "help", "aria-labelledby": id },
    h("header", {}, h("h2", { id }, "How to read this page"), close),
    h(
      "div",
      { class: "help-body", tabindex: "0", role: "region", "aria-label": "Help" },
      h(
        "p",
        { class: "lead" },
        "The left half shows all samples, the right half one of them. All plots are linked: select a sample in the embedding or the list, then drag along its orbit.",
      ),
      h(
        "div",
        { class: "help-columns" },
        h("section", {}, h("h3", {}, "Sections"), pairs(tour)),
        h("section", {}, h("h3", {}, "Keys"), keys),
        h("section", {}, h("h3", {}, "Glossary"), pairs(glossary)),
      ),
    ),
  );
  const offered = button("", null, { class: "tool", hidden: true });
  close.before(offered);

  /** Offer something else in the bar of the dialog, which it closes. */
  function offer(text, begin) {
    show(offered, true);
    write(offered, text);
    offered.onclick = () => (dialog.close(), begin());
  }

  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  root.append(dialog);
  return { offer, open: () => dialog.open || dialog.showModal(), destroy: () => dialog.remove() };
}
