// The front end, written to anywidget's contract: it knows only `model` and `el`.

import { MANY, SEVERAL } from "./draw/colors.js";
import { createContext } from "./core/context.js";
import { createFindings, createSetNames } from "./core/saved_list.js";
import { createRefresh } from "./core/refresh.js";
import { createHistory, createStore, createUndo } from "./core/store.js";
import { createKeyboard, shortcuts } from "./sections/shortcuts.js";
import { createRequests } from "./core/requests.js";
import { createSets } from "./core/sets.js";
import { atSamePlace, validated } from "./core/selection_rules.js";
import { createTheme } from "./core/theme.js";
import { createThumbnails } from "./core/thumbnails.js";
import { decode } from "./core/wire.js";
import { createDiagnosis } from "./sections/diagnosis.js";
import { createExport } from "./sections/export.js";
import { createFindingsPanel } from "./sections/findings.js";
import { createGuide } from "./sections/guide.js";
import { createHelp } from "./sections/help.js";
import { createPreview } from "./sections/preview.js";
import { createSections } from "./sections/index.js";
import { createShell } from "./sections/shell.js";
import { createStage } from "./sections/stage.js";
import { createStory } from "./sections/story.js";

const PAUSE_MS = 1000;
/** What keys step through; a lasso or a switch is a step of its own. */
const STEPPED = ["element", "position", "sample"];

/** Show the page in `el`, with the data behind `model`. Returns the function that ends it. */
function render({ model, el }) {
  el.classList.add("orbical");
  let sets = null;
  const history = createHistory(model, ({ subset }) => sets?.runs(subset) ?? null);
  const store = createStore(history.read());
  // The server drops a waiting request for a newer one, so that it should always hold the newest; a
  // notebook's kernel answers all that it was sent, so that it should be sent little.
  const limit = model.get("host") === "socket" ? Infinity : 2;
  const requests = createRequests((message) => model.send(message), {
    limit,
    refused: (answer) => sets?.refused(answer) ?? false,
  });
  const theme = createTheme(el);
  const help = createHelp(el);
  const onback = () => store.set({ scan: "" });
  const shell = createShell(el, { onhelp: help.open, ontheme: theme.toggle, onback });
  const parts = [theme, help, shell];
  let mounted = [];
  let known = null;
  let refresh = null;
  let preview = null;
  let last = { at: 0, what: "" };

  function receive(content, buffers) {
    requests.receive(buffers?.length ? decode(buffers[0]) : content);
  }

  function connection({ state }) {
    shell.connection(state === "lost");
    if (state === "lost") requests.close();
    else requests.reopen();
  }

  function mount(state) {
    if (state.error) return shell.state("error", state.error);
    const scrolled = el.scrollTop;
    unmount();
    const kept = atSamePlace(store.get(), known, state);
    known = state;
    const fresh = history.fresh();
    store.set(validated(kept, state), { from: "state" });
    shell.name(state.scans.length > 1 ? "" : (state.title ?? ""));
    shell.state("ready");
    shell.cover(state.report?.cover);
    const ownWords = state.preview && !state.preview.follows; // a first look says in its strip what it found
    shell.headline(ownWords ? "" : "…"); // its place, so that nothing moves when it comes
    const app = createContext({
      state,
      store,
      theme,
      history,
      root: el,
      announce: shell.announce,
      request: requests.request,
      on: requests.on,
      busy: requests.busy,
      stop: requests.stop,
    });
    Object.assign(shell.detail.dataset, { layout: state.group.kind, view: state.views.detail });
    shell.overview.dataset.layout = state.group.kind;
    shell.detail.classList.toggle("with-several", state.models.length > SEVERAL);
    shell.detail.classList.toggle("with-many", state.models.length > MANY);
    app.thumbnails = createThumbnails(app);
    app.undo = createUndo(store);
    sets = app.sets = createSets({
      samples: state.samples,
      store,
      request: (body) => app.request("set", body),
      again: requests.again,
      lost: (name) => lose(name, app),
    });
    sets.learn(store.get().subset, history.members());
    app.names = createSetNames(app);
    app.sections = createSections(shell, app);
    app.stage = createStage(shell, app);
    app.help = help;
    app.exporter = createExport(shell.exporter, app);
    app.findings = createFindings(app);
    app.story = createStory(shell.bar, app);
    app.panel = createFindingsPanel(shell.findings, app);
    shell.diagnosis.hidden = Boolean(state.report);
    app.diagnosis = createDiagnosis(shell.diagnosis, app);
    const keys = createKeyboard(model.get("host") === undefined ? el : document, shortcuts(app));
    refresh = createRefresh(store, app.request, (kind) => state[kind] !== false);
    mounted = [
      ...Object.values(app.sections),
      app.stage,
      app.thumbnails,
      app.exporter,
      app.findings,
      app.story,
      app.panel,
      app.diagnosis,
      app.names,
      app.undo,
      keys,
      refresh,
      sets,
      { destroy: app.on("set", sets.receive) },
      { destroy: app.on("headline", ({ text }) => shell.headline(ownWords ? "" : text)) },
    ];
    el.scrollTop = scrolled;
    sets.fetch();
    if (app.story.begin(fresh) === false) startAtWorst(app);
    if (state.guide) {
      const guide = createGuide(el, app);
      mounted.push(guide);
      help.offer("Repeat the first minute", guide.begin);
    }
    if (!state.preview) return void (preview = preview?.destroy());
    preview ??= createPreview(shell.preview, {
      root: el,
      selection: () => ({ scan: store.get().scan }),
      request: requests.request,
      on: requests.on,
      refresh: () => refresh.again(),
      reload: () => requests.request("state", { selection: { scan: store.get().scan } }),
    });
    preview.at(state.preview);
    return undefined;
  }

  /** Nobody knows the samples of a set, as after a link from elsewhere: show all, and say so. */
  function lose(name, app) {
    if (store.get().subset !== name) return;
    store.set({ subset: "" }, { from: "state" });
    app.sections.headings.lost();
  }

  /** Nothing was asked for: begin where a model is worst, with a sample that shows it. */
  function startAtWorst(app) {
    store.set({ order: "variable" }, { done: false, from: "state" });
    const before = store.get();
    const stop = app.on("headline", ({ text, sample, element }) => {
      stop();
      const stayed = ["scan", "sample", "element"].every((name) => store.get()[name] === before[name]);
      if (stayed && text) store.set({ sample, element }, { from: "state" });
    });
  }

  /** Write the address when a change is finished; steps the reader did not make replace it. */
  function keep(selection, { changed, done, from }) {
    if (!done || from === "link" || (from === "state" && !changed.length)) return;
    const [now, what] = [performance.now(), changed.join()];
    const stepped = changed.every((name) => STEPPED.includes(name));
    const goesOn = stepped && what === last.what && now - last.at < PAUSE_MS; // held keys are one step
    last = { at: now, what };
    history.write(selection, from === "state" || goesOn, changed.includes("scan"));
  }

  function unmount() {
    mounted.forEach((part) => part.destroy());
    mounted = [];
    for (const holder of [shell.menus, shell.filters, shell.overview, shell.detail, shell.strip])
      holder.replaceChildren();
  }

  function load() {
    shell.state("loading");
    requests.request("state", { selection: { scan: store.get().scan } });
  }

  shell.theme(theme.current());
  const stops = [
    theme.on(shell.theme),
    requests.on("state", mount),
    store.subscribe(["scan"], load),
    store.subscribe(["shape"], () => known && queueMicrotask(() => mount(known))), // all plots are made anew
    store.subscribe(["done"], keep),
    history.onchange((selection) => {
      sets?.learn(selection.subset, history.members());
      store.set(known ? validated(selection, known) : selection, { from: "link" });
    }),
  ];
  model.on("msg:custom", receive);
  model.on("connection", connection);
  load();
  return () => {
    unmount();
    stops.forEach((stop) => stop());
    parts.forEach((part) => part.destroy());
    preview?.destroy();
    model.off("msg:custom", receive);
  };
}

export default { render };
