// Light and dark: the system's choice until the reader makes their own, which is remembered.

const KEY = "orbical-theme";

/** Follow the system's color scheme, with a toggle that is remembered where storage is allowed. */
export function createTheme(root) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();
  let chosen = remembered();

  /** A notebook says itself whether it is dark; elsewhere the system does. */
  function usual() {
    const notebook = document.body?.dataset.jpThemeLight;
    return (notebook === undefined ? system.matches : notebook === "false") ? "dark" : "light";
  }

  function current() {
    return chosen ?? usual();
  }

  function apply() {
    show(current());
    for (const listener of listeners) listener(current());
  }

  /** Show a theme for a while, as paper needs the light one; without a name, that of the reader. */
  function show(name = current()) {
    root.dataset.theme = name;
    if (root.ownerDocument.documentElement.classList.contains("orbical-page")) {
      root.ownerDocument.documentElement.dataset.theme = name;
    }
    document.dispatchEvent(new Event("themechange")); // plots on a canvas paint themselves anew
  }

  function toggle() {
    chosen = current() === "dark" ? "light" : "dark";
    remember(chosen);
    apply();
  }

  system.addEventListener("change", apply);
  apply();
  return {
    current,
    show,
    toggle,
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: () => system.removeEventListener("change", apply),
  };
}

function remembered() {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : null;
  } catch {
    return null;
  }
}

function remember(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Storage is refused in some notebooks and files; the choice then lasts as long as the page.
  }
}
