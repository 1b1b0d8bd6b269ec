// Signals [channels, time]: reversed, shifted around their axis, and multiplied.

export function moveSignals(_action, element, { data, shape }) {
  const length = shape[shape.length - 1];
  const shift = element.shift ?? 0;
  const whole = Math.floor(shift);
  const share = shift - whole;
  const gain = element.gain ?? 1;
  const wrapped = (t) => ((t % length) + length) % length;
  const moved = new Float32Array(data.length);
  for (let start = 0; start < data.length; start += length) {
    const at = (t) => data[start + (element.time < 0 ? length - 1 - t : t)];
    for (let t = 0; t < length; t += 1) {
      const here = at(wrapped(t - whole));
      moved[start + t] = gain * (share ? here + share * (at(wrapped(t - whole - 1)) - here) : here);
    }
  }
  return { data: moved, shape };
}

// A view of action.size samples in the middle of longer signals.
export function moveSignalWindow(action, element, field) {
  const { data, shape } = moveSignals(action, element, field);
  const length = shape[shape.length - 1];
  const start = Math.floor((length - action.size) / 2);
  const rows = data.length / length;
  const view = new Float32Array(rows * action.size);
  for (let row = 0; row < rows; row += 1) {
    const from = row * length + start;
    view.set(data.subarray(from, from + action.size), row * action.size);
  }
  return { data: view, shape: [...shape.slice(0, -1), action.size] };
}
