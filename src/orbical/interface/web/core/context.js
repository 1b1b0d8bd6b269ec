// What every section is given: the state, the selection, and the words for them.

import { modelColor, modelDash } from "../draw/colors.js";
import { elementNames, positionName, sharedFolder, singular } from "./text.js";
import { consequences, coordinates, nearestElement, pinned } from "./selection_rules.js";
import { createSceneCache } from "./thumbnails.js";

const IN_PIXELS = ["Images", "ImagePair", "Window"];

/** Make `app` for one scan. */
export function createContext({ state, store, request, on, busy, stop, theme, history, root, announce }) {
  const places = new Map(state.models.map(({ name }, i) => [name, i]));
  const drawn = (group) => ({ ...group, straight: store.get().shape === "line" });
  const group = drawn(groupOf(state));
  const truths = state.task.labeled;
  const scenes = createSceneCache();
  const folder = sharedFolder(state.names ?? []);
  /** @type {(by: number) => void} */
  let step = () => {};

  const app = { state, store, on, busy, stop, theme, history, root, announce, group, noun: state.noun ?? "samples" };

  app.request = (kind, extra = {}) => {
    const { sample, pins } = store.get();
    const held = {
      classes: () => ({ most: app.mostGroups }),
      place: () => (scenes.has(sample) ? { scene: false } : {}),
      pinned: () => ({ held: pins.filter(scenes.has) }),
    }[kind];
    request(kind, { selection: store.get(), ...extra, ...held?.() });
  };
  app.select = (patch) => store.set(consequences(store.get(), patch));
  /** How many groups of samples are asked for. */
  app.mostGroups = 12;
  app.look = (name) => {
    const place = places.get(name) ?? 0;
    return { name, color: modelColor(place), dash: modelDash(place) };
  };

  /** The models shown, with their colors; `names` where an answer says which it holds. */
  app.shown = (names) => {
    const chosen = store.get().models;
    const wanted = names?.length ? names.map((one) => one.name ?? one) : chosen.length ? chosen : [...places.keys()];
    return wanted.map(app.look);
  };

  /** The metric of the menus; a score against the consensus says so. */
  app.metric = () => titled(state.metrics.find(({ name }) => name === store.get().metric) ?? state.metrics[0]);

  /** A metric of an answer, which may differ from the chosen one. */
  app.metricNamed = (name) => titled(state.metrics.find((metric) => metric.name === name) ?? state.metrics[0]);

  function titled(metric, consensus = app.byConsensus()) {
    if (metric.name !== "score" || !consensus) return metric;
    return {
      ...metric,
      title: metric.title.includes("true")
        ? metric.title.replace("true", "consensus")
        : `${metric.title} vs. consensus`,
    };
  }

  app.againstConsensus = (metric) => titled(metric, true);

  app.byBoth = () => truths && store.get().reference === "both";

  app.byConsensus = () => store.get().reference === "consensus" || !truths;

  /** The metric of one sample: the score where the chosen one is a measure of many. */
  app.sampleMetric = () => {
    const chosen = app.metric();
    const metric = chosen.per_sample ? chosen : titled(state.metrics[0]);
    return { ...metric, column: metric.name === "score" && app.byConsensus() ? "score_vs_consensus" : metric.name };
  };

  app.shortTitle = (metric) =>
    metric.name === "score"
      ? "score"
      : metric.title
          .replace(` in ${app.state.units?.[metric.name]}`, "")
          .replace(/^[A-Z](?=[a-z]+\b)/, (letter) => letter.toLowerCase());
  app.element = () => (store.get().element < 0 ? group.identity : store.get().element);
  app.place = () => ({ element: app.element(), position: store.get().position });

  /** The name of a place: that of its element, or what the position says between elements. */
  app.placeName = (element, position) => (position.length ? positionName(group, position) : group.names[element]);

  /** Move along the orbit; while `done` is false the address is left alone. */
  app.move = ({ element, position = [], done = true }) => {
    const free = state.live && state.group.continuous ? Array.from(position) : [];
    store.set({ element, position: free }, { done });
  };

  /** Finer steps of one sample: the nearest element of the scan, and the exact position. */
  app.coarse = (move, fine) => {
    const position = move.position?.length ? move.position : coordinates(fine, move.element);
    return { element: nearestElement(group, position), position, done: move.done };
  };
  app.fine = (fine) => {
    const { element, position } = app.place();
    return nearestElement(fine, position.length ? position : coordinates(group, element));
  };
  app.groupOf = (answer) => drawn(groupOf({ ...answer, live: state.live, move: state.move }));

  /** Why there is nothing to show: the subset is empty, or the scan has just begun. */
  app.nothing = () => {
    const { subset, filter } = store.get();
    return subset || filter.length ? `No ${app.noun} in this subset.` : `No ${singular(app.noun)} is finished yet.`;
  };

  /** The number of a sample in its scan; a report holds only some of them. */
  app.number = (sample) => state.arrays.original?.data[sample] ?? sample;
  /** What a sample is called, where samples have names: without the folder that all of them share. */
  app.called = (sample) => (state.names?.[sample] ?? "").slice(folder.length);

  /** The list says how to walk it. */
  app.listed = (walk) => (step = walk);

  /** Pin a sample, or take its pin away. */
  app.pin = (sample = store.get().sample) => app.select({ pins: pinned(store.get().pins, sample) });

  /** Select the sample some steps further down the list. */
  app.step = (by) => step(by);

  /** What a view is given from the answer at a place. */
  app.viewContent = (answer, part) => {
    const models = app.shown(answer.models);
    const arrays = scenes.complete(answer);
    const under = (prefix) => named(arrays, prefix);
    return {
      part,
      slices: store.get().slices,
      fields: under(`${part}/`),
      inputs: under("input/"),
      consensus: under("consensus/"),
      truths: under("truth/"),
      byConsensus: app.byConsensus(),
      byBoth: app.byBoth(),
      about: answer[part],
      models: models.map(({ name }) => name),
      colors: models.map(({ color }) => color),
      truth: answer.truth ?? null,
      label: answer.label ?? answer.truth ?? null,
      classes: state.classes,
      place: {
        sample: answer.sample ?? store.get().sample,
        element: answer.element,
        position: answer.position,
        name: app.placeName(answer.element, answer.scanned === false ? answer.position : []),
        live: answer.live,
      },
    };
  };

  return app;
}

/** The arrays whose names begin with a prefix, by the rest of their names. */
function named(arrays, prefix) {
  const chosen = Object.entries(arrays).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(chosen.map(([name, array]) => [name.slice(prefix.length), array]));
}

/** The group as the plots take it: the fields of the answer and its arrays. */
function groupOf(answer) {
  const { index, plane, time, weights } = answer.arrays;
  return {
    ...answer.group,
    names: elementNames(answer.group),
    index,
    plane,
    time,
    weights,
    continuous: Boolean(answer.group.continuous && answer.live),
    unit: IN_PIXELS.includes(answer.move?.action) ? "px" : "",
  };
}
