// Smooth calibration error: the integral of the absolute residual density, smoothed by a Gaussian
// that is reflected at 0 and 1, at the bandwidth that equals the error itself. The reflected
// Gaussian multiplies each cosine on the interval by a Gaussian in its wave number.
const GRID = 512;
const WAVES = 160; // the higher ones are damped away at every bandwidth above 0.01
const BISECTIONS = 18;

const COSINE = Float64Array.from({ length: 2 * GRID }, (_, i) => Math.cos((Math.PI * i) / GRID));

// Residuals split linearly over the points of the grid, as their first cosine coefficients.
function spectrum(confidence, correct) {
  const masses = new Float64Array(GRID + 1);
  for (let i = 0; i < confidence.length; i++) {
    const place = Math.min(1, Math.max(0, confidence[i])) * GRID;
    const left = Math.min(GRID - 1, Math.floor(place));
    const residual = (correct[i] - confidence[i]) / confidence.length;
    masses[left] += residual * (1 - (place - left));
    masses[left + 1] += residual * (place - left);
  }
  const found = new Float64Array(WAVES);
  for (let k = 0; k < WAVES; k++) {
    for (let g = 0; g <= GRID; g++) found[k] += masses[g] * COSINE[(k * g) % (2 * GRID)];
  }
  return found;
}

function smoothedError(waves, bandwidth) {
  const damped = waves.map((a, k) => a * Math.exp(-((bandwidth * Math.PI * k) ** 2) / 2) * (k ? 2 : 1));
  const most = damped.findLastIndex((a) => Math.abs(a) > 1e-9) + 1;
  let total = 0;
  for (let g = 0; g <= GRID; g++) {
    let density = 0;
    for (let k = 0; k < most; k++) density += damped[k] * COSINE[(k * g) % (2 * GRID)];
    total += Math.abs(density) * (g === 0 || g === GRID ? 0.5 : 1);
  }
  return total / GRID;
}

export function smoothEce(confidence, correct) {
  if (!confidence.length) return NaN;
  const waves = spectrum(confidence, correct);
  let [low, high] = [0, 1];
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2;
    if (smoothedError(waves, middle) > middle) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
