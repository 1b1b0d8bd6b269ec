// Keys that work wherever the focus is, except where letters are typed or a menu is open.

const TYPING = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog";

/** Listen for keys on `target`; `table` maps a key, such as "m" or "Ctrl+z", to what it does. */
export function createKeyboard(target, table) {
  function onkeydown(event) {
    if (event.defaultPrevented || event.altKey) return;
    const from = event.composedPath()[0];
    if (from instanceof Element && from.closest(TYPING) && event.key !== "Escape") return;
    const act = table[event.ctrlKey || event.metaKey ? `Ctrl+${event.key}` : event.key];
    if (!act) return;
    if (act(event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  }
  target.addEventListener("keydown", onkeydown);
  return { destroy: () => target.removeEventListener("keydown", onkeydown) };
}
