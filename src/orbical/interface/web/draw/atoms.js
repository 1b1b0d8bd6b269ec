// How atoms are drawn: a symbol, the usual color of the element, and a radius in ångström.

const USUAL = {
  1: ["H", "#e8e8e8", 0.31],
  2: ["He", "#b9e8ee", 0.28],
  3: ["Li", "#b07cc6", 1.28],
  5: ["B", "#e8a28e", 0.84],
  6: ["C", "#5a5f66", 0.76],
  7: ["N", "#4a6fe3", 0.71],
  8: ["O", "#e0443e", 0.66],
  9: ["F", "#6bbf4b", 0.57],
  11: ["Na", "#9a63c9", 1.66],
  12: ["Mg", "#4f9d3a", 1.41],
  13: ["Al", "#a9a3a3", 1.21],
  14: ["Si", "#c9a26d", 1.11],
  15: ["P", "#e8862b", 1.07],
  16: ["S", "#e3c229", 1.05],
  17: ["Cl", "#3fae3f", 1.02],
  19: ["K", "#7d4fae", 2.03],
  20: ["Ca", "#3f8f4f", 1.76],
  26: ["Fe", "#c86432", 1.32],
  29: ["Cu", "#b87333", 1.32],
  30: ["Zn", "#7f86b0", 1.22],
  35: ["Br", "#9a3b26", 1.2],
  53: ["I", "#7a2a8c", 1.39],
};

/** `{symbol, color, radius}` of an element; one that is drawn seldom has no symbol. */
export function atomOf(number) {
  const [symbol, color, radius] = USUAL[number] ?? ["", "#c05c9b", 1.3];
  return { symbol, color, radius };
}

/** Pairs of atoms near enough for a bond: closer than 1.2 times their radii together. */
export function bondsOf(points, numbers) {
  const bonds = [];
  for (let i = 0; i < points.length; i += 1) {
    for (let j = i + 1; j < points.length; j += 1) {
      const apart = Math.hypot(...points[i].map((value, axis) => value - points[j][axis]));
      if (apart < 1.2 * (atomOf(numbers[i]).radius + atomOf(numbers[j]).radius)) bonds.push([i, j]);
    }
  }
  return bonds;
}

/** How many atoms of each element, the usual ones by their symbols: "2 C, 6 H, 1 O". */
export function composition(numbers) {
  const counts = new Map();
  for (const number of numbers) {
    const name = atomOf(number).symbol || `Z=${number}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
}
