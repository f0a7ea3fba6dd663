// What charts over time share: shapes of SVG, times of day, and the axis below.

const SVG = "http://www.w3.org/2000/svg";
const STEPS = [5, 10, 15, 30, 60, 120, 300];
const APART = 78; // pixels between two times of day

export const BELOW = 24; // pixels that the axis takes

export function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function clock(time) {
  return new Date(1000 * time).toLocaleTimeString([], { hour12: false });
}

export function axis(svg, state, span, width, bottom, x) {
  const step = STEPS.find((it) => (width * it) / span > APART) || span;
  const first = Math.ceil((state.now - span) / step) * step;
  for (let time = first; time <= state.now; time += step) {
    svg.append(shape("line", { class: "grid", x1: x(time), x2: x(time), y1: 0, y2: bottom }));
    svg.append(shape("text", { x: x(time), y: bottom + 17, "text-anchor": "middle" }, clock(time)));
  }
}
