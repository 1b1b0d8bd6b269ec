// A report: a model like a widget's, whose answers are computed in the page from embedded data.
import * as app from "../app.js";
import { createAnswers, createPack, textInPage } from "./static_answers.js";

function createModel(pack) {
  const answer = createAnswers(pack);
  const listeners = new Set();
  return {
    get: (name) => ({ host: "static" })[name],
    set() {},
    save_changes() {},
    on: (name, listener) => name === "msg:custom" && listeners.add(listener),
    off: (name, listener) => name === "msg:custom" && listeners.delete(listener),
    send: (message) => answer(message).then((found) => listeners.forEach((listener) => listener(found, []))),
  };
}

if (typeof document !== "undefined") {
  const pack = createPack(textInPage);
  app.default.render({ model: createModel(pack), el: document.getElementById("orbical") });
}
