// The page served by Python: one web socket, and a model like a widget's around it.

import * as app from "../app.js";

const FIRST_MS = 300;
const LAST_MS = 5000;

/** Keep a socket open; tell listeners of answers and of the connection. */
function createModel(address) {
  const listeners = { "msg:custom": new Set(), connection: new Set() };
  let socket = null;
  let wait = FIRST_MS;

  function tell(name, ...words) {
    for (const listener of [...listeners[name]]) listener(...words);
  }

  function connect() {
    socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      wait = FIRST_MS;
      tell("connection", { state: "open" });
    };
    socket.onmessage = ({ data }) =>
      typeof data === "string" ? tell("msg:custom", JSON.parse(data), []) : tell("msg:custom", {}, [data]);
    socket.onclose = () => {
      tell("connection", { state: "lost" });
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, LAST_MS);
    };
  }

  connect();
  return {
    get: (name) => ({ host: "socket" })[name],
    set() {},
    save_changes() {},
    on: (name, listener) => listeners[name]?.add(listener),
    off: (name, listener) => listeners[name]?.delete(listener),
    send(message) {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
  };
}

/** The socket beside the page, under whatever path it is served. */
function socketAddress(location) {
  const url = new URL("ws", location.href.replace(/[?#].*$/, ""));
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

if (typeof document !== "undefined") {
  // The token stays neither in the address bar nor in the history, where others could read it.
  if (location.search) history.replaceState(history.state, "", location.pathname + location.hash);
  app.default.render({ model: createModel(socketAddress(location)), el: document.getElementById("orbical") });
}
