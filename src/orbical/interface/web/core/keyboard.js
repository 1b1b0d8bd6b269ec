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
