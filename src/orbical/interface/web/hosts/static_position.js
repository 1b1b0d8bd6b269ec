// Where on an orbit a request is: an element of the scan, or a position between elements, as orbit_positions.py does.
const AXES = { circle: ["angle"], plane: ["dx", "dy"], line: ["scale"] };
const NEAR = 1e-6;

const MATRICES = {
  angle([angle]) {
    const [c, s] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
    return [c, -s, 0, s, c, 0, 0, 0, 1];
  },
  dx: ([dx, dy]) => [1, 0, dx, 0, 1, dy, 0, 0, 1],
  scale: ([scale]) => [scale, 0, 0, 0, scale, 0, 0, 0, 1],
};

// The nearest element, its coordinates, and between elements the matrix of the plane.
export function located(group, element, position) {
  const axes = group.continuous ? (AXES[group.kind] ?? []) : [];
  const coords = axes.map((axis) => group.coords[axis]);
  const still = { element, position: coords.map((values) => values[element]), plane: null, name: group.names[element] };
  if (!position.length || position.length !== axes.length) return still;
  const round = axes[0] === "angle";
  const here = position.map((value, i) =>
    round ? ((value % 360) + 360) % 360 : Math.min(Math.max(value, Math.min(...coords[i])), Math.max(...coords[i])),
  );
  const distances = coords[0].map((_, k) =>
    Math.hypot(
      ...here.map((value, i) => {
        const apart = Math.abs(coords[i][k] - value);
        return round ? Math.min(apart, 360 - apart) : apart;
      }),
    ),
  );
  const nearest = distances.indexOf(Math.min(...distances));
  if (distances[nearest] < NEAR) return located(group, nearest, []);
  const name = axes.map((axis, i) => `${axis} ${Number(here[i].toPrecision(4))}`).join(", ");
  return { element: nearest, position: here, plane: MATRICES[axes[0]](here), name };
}
