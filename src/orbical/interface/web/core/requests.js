// Newest wins: one slot per kind, sent at most once per animation frame and no faster than it is answered,
// and answers older than one already shown are dropped. A drag can never queue up behind a slow model, where
// a place would be old before its turn, and what can wait is asked for after all else has been answered: it
// reads the whole scan, beside the first picture.

const PATIENT = new Set(["columns", "consistency"]);
const LONGEST_PACE_MS = 100; // work that takes longer is told soon that nobody waits for it

const patience = (kind) => Number(PATIENT.has(kind));

const nextFrame = (callback) =>
  typeof requestAnimationFrame === "function" ? requestAnimationFrame(callback) : setTimeout(callback, 16);

/**
 * Make the flow control between the page and `send(message)`; an answer for which `refused(answer)` is true
 * is delivered to nobody.
 */
export function createRequests(
  send,
  {
    frame = nextFrame,
    now = () => performance.now(),
    limit = 2,
    refused = /** @type {(answer: any) => boolean} */ (() => false),
  } = {},
) {
  const kinds = new Map();
  let sequence = 0;
  let scheduled = false;
  let open = true;

  function slot(kind) {
    if (!kinds.has(kind)) {
      const flow = { waiting: null, last: null, flying: [], begun: false, shown: 0, sent: 0, pace: 0 };
      kinds.set(kind, { ...flow, listeners: new Set() });
    }
    return kinds.get(kind);
  }

  /** Ask; a request of the same kind that still waits is replaced. */
  function request(kind, body) {
    slot(kind).waiting = body;
    schedule();
  }

  function schedule() {
    if (scheduled || !open) return;
    scheduled = true;
    frame(flush);
  }

  function flush() {
    scheduled = false;
    if (!open) return;
    for (const [kind, one] of [...kinds].sort(([one], [other]) => patience(one) - patience(other))) {
      if (one.waiting === null || one.flying.length >= limit || (PATIENT.has(kind) && pressed())) continue;
      if (one.flying.length && now() - one.sent < one.pace) {
        schedule();
        continue;
      }
      sequence += 1;
      one.flying.push(sequence);
      one.sent = now();
      one.last = one.waiting;
      one.waiting = null;
      one.begun = false;
      send({ kind, sequence, ...one.last });
    }
  }

  /** Whether something that cannot wait has not been answered at all; long work begins with a part. */
  const pressed = () => [...kinds].some(([kind, one]) => !PATIENT.has(kind) && one.flying.length > 0 && !one.begun);

  /** Take an answer: deliver it unless a newer one of its kind was delivered already. */
  function receive(answer) {
    const one = slot(answer.kind);
    if (answer.sequence < one.shown) return false;
    const partial = answer.progress !== undefined;
    one.begun = true;
    if (!partial) {
      // The server answers the newest of a kind, so an answer closes every older request too.
      one.flying = one.flying.filter((number) => number > answer.sequence);
      one.shown = answer.sequence;
      one.pace = Math.min(answer.took_ms ?? 0, LONGEST_PACE_MS);
    }
    if (!refused(answer)) {
      tell(`${answer.kind} progress`, answer);
      // How far some work is concerns only those who show that; what it has so far, everybody.
      const empty = partial && !Object.keys(answer.arrays ?? {}).length;
      if (!empty && !answer.stopped) tell(answer.kind, answer);
    }
    if (one.waiting !== null || [...PATIENT].some((kind) => slot(kind).waiting !== null)) schedule();
    return true;
  }

  function tell(kind, answer) {
    for (const listener of [...slot(kind).listeners]) listener(answer);
  }

  /** Stop the long work behind the newest request of a kind. */
  function stop(kind) {
    slot(kind).waiting = null;
    if (open) send({ kind: "stop", of: kind });
  }

  /** Ask once more what was asked last, unless something newer waits. */
  function again(kind) {
    const one = slot(kind);
    if (one.waiting === null && one.last !== null) request(kind, one.last);
  }

  /** Listen to answers of a kind; returns the function that stops it. */
  function on(kind, listener) {
    slot(kind).listeners.add(listener);
    return () => slot(kind).listeners.delete(listener);
  }

  /** The connection was lost: hold everything back. */
  function close() {
    open = false;
  }

  /** The connection is back: ask again what was never answered. */
  function reopen() {
    open = true;
    for (const one of kinds.values()) {
      if (one.waiting === null && one.flying.length) one.waiting = one.last;
      one.flying = [];
    }
    schedule();
  }

  /** Whether something was asked that is not answered. */
  const busy = () => [...kinds.values()].some((one) => one.waiting !== null || one.flying.length > 0);

  return { request, again, stop, receive, on, close, reopen, busy };
}
