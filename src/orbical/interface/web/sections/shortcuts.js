// Keys that work wherever the focus is, except where letters are typed or a menu is open.

const TYPING = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog";

/** The name of a key; with Ctrl the case of its letter says Shift, whether caps are locked or not. */
function named({ key, ctrlKey, metaKey, shiftKey }) {
  if (!ctrlKey && !metaKey) return key;
  return `Ctrl+${shiftKey ? key.toUpperCase() : key.toLowerCase()}`;
}

/** Listen for keys on `target`; `table` maps a key, such as "m" or "Ctrl+z", to what it does. */
export function createKeyboard(target, table) {
  function onkeydown(event) {
    if (event.defaultPrevented || event.altKey) return;
    const from = event.composedPath()[0];
    if (from instanceof Element && from.closest(TYPING) && event.key !== "Escape") return;
    const act = table[named(event)];
    if (!act) return;
    if (act(event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  }
  target.addEventListener("keydown", onkeydown);
  return { destroy: () => target.removeEventListener("keydown", onkeydown) };
}

const ORDER = ["aggregate", "embedding", "list", "calibration", "individual", "input", "detail"];

/** How a change by key is announced to screen readers. */
const SPOKEN = { reference: "compare with", order: "sort", color: "color", scope: "calibration scope" };

/** The table from key to action. */
export function shortcuts(app) {
  const { state, store } = app;

  /** Choose the next of a list of names. */
  function cycle(field, names, by = 1) {
    if (names.length < 2) return;
    const now = names.indexOf(store.get()[field]);
    app.select({ [field]: names[(Math.max(0, now) + by + names.length) % names.length] });
    app.announce(`${SPOKEN[field]}: ${store.get()[field]}`);
  }

  const metrics = state.metrics.map(({ name }) => name);
  const metric = (by) => {
    const now = metrics.indexOf(app.metric().name);
    app.select({ metric: metrics[(now + by + metrics.length) % metrics.length] });
    app.announce(`metric: ${app.metric().title}`);
  };
  const table = {
    "?": () => app.help.open(),
    "[": () => app.step(-1),
    "]": () => app.step(1),
    m: () => metric(1),
    M: () => metric(-1),
    r: () => cycle("reference", state.task.labeled ? ["truth", "consensus", "both"] : ["consensus"]),
    o: () => cycle("order", ["worst", "best", "variable"]),
    c: () => cycle("color", state.colors),
    k: () => cycle("scope", ["element", "orbit"]),
    p: () => app.pin(),
    t: () => app.sections.headings.tag?.() ?? true,
    d: () => app.theme.toggle(),
    b: () => app.panel.toggle(),
    y: () => (state.report ? false : app.diagnosis.toggle()),
    ",": () => app.story.step(-1),
    ".": () => app.story.step(1),
    x: () => app.exporter.open(),
    f: () => app.stage.toggle(),
    Escape: () => app.stage.close() || (store.get().subset ? app.select({ subset: "" }) : false),
    "Ctrl+z": () => app.undo.undo(),
    "Ctrl+Z": () => app.undo.redo(),
    "Ctrl+y": () => app.undo.redo(),
  };
  for (const key of "+=-−0") table[key] = () => app.sections[store.get().stage]?.zoom?.key(key) ?? false;
  ORDER.forEach((name, i) => (table[String(i + 1)] = () => app.sections[name]?.focus()));
  return table;
}
