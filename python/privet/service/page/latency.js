// How long inferences took over time: of each model the median and the 95th percentile of those that ended in a
// twelfth of the window.

import { BELOW, axis, clock, shape } from "/assets/axis.js";
import { amount, clear, seconds } from "/assets/shape.js";

const LEFT = 76;
const RIGHT = 30;
const HEIGHT = 150;
const NARROWEST = 260;
const PARTS = 12;
const LINES = 6; // the most models that have a line, the busiest ones
const COLOURS = 6;
const MARKS = [
  "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
  "M-3.5,-3.5h7v7h-7z",
  "M0,-4.5l4.5,8h-9z",
  "M0,-5l5,5l-5,5l-5,-5z",
  "M0,4.5l4.5,-8h-9z",
];
const LEAST = 0.004; // seconds that the scale shows at least, as it is written in whole milliseconds
const REACH = 8; // around a part where a pointer finds it
const CAP = 5; // half of the line at a 95th percentile

const seen = new Map(); // which colour and mark a model keeps
let chosen = null; // the model and the start of the part that was pointed at, or reached by a key, last

// The rule of the tile of delays.
function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

function figures(runs) {
  const sorted = runs.map((it) => it.ended - it.started).sort((one, other) => one - other);
  return { count: sorted.length, median: percentile(sorted, 0.5), high: percentile(sorted, 0.95) };
}

function groups(runs, key) {
  const found = new Map();
  for (const run of runs) {
    if (!found.has(key(run))) found.set(key(run), []);
    found.get(key(run)).push(run);
  }
  return found;
}

// Of each model with inferences in the window the figures of all and of each part, the busiest model first.
export function latencies(state, span) {
  const width = span / PARTS;
  const done = state.timeline.filter((it) => it.phase === "on" && !it.failure && it.ended > state.now - span);
  const models = [...groups(done, (it) => it.model)].map(([model, runs]) => {
    const parts = groups(runs, (it) => Math.floor(it.ended / width) * width);
    const points = [...parts].map(([start, its]) => ({ model, start, end: start + width, ...figures(its) }));
    return { model, ...figures(runs), points: points.sort((one, other) => one.start - other.start) };
  });
  models.sort((one, other) => other.count - one.count || (one.model < other.model ? -1 : 1));
  for (const it of models) if (!seen.has(it.model)) seen.set(it.model, seen.size);
  return models;
}

const drawn = (models) => models.slice(0, LINES);
const colour = (model) => `series-${seen.get(model) % COLOURS}`;
const mark = (model) => MARKS[seen.get(model) % MARKS.length];
const isChosen = (it) => chosen !== null && it.model === chosen.model && it.start === chosen.start;

export function swatch(models, model) {
  const svg = shape("svg", { class: "mark", viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
  const has = drawn(models).some((it) => it.model === model);
  if (has) svg.append(shape("path", { class: colour(model), d: mark(model) }));
  return svg;
}

function describe(readout, it) {
  clear(readout);
  const name = document.createElement("b");
  name.textContent = it.model;
  readout.append(name, ` from ${clock(it.start)} to ${clock(it.end)}: median ${seconds(it.median)},` +
    ` 95 % within ${seconds(it.high)}, of ${amount(it.count, "inference")}`);
}

// Chooses another part by a key: left and right in time, up and down between models. Whether the key means something here.
export function choosePart(key, state, span) {
  const models = drawn(latencies(state, span));
  const row = models.findIndex((it) => it.model === chosen?.model);
  const keys = ["Home", "End", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
  if (!keys.includes(key) || models.length === 0) return false;
  if (row < 0) {
    chosen = models[0].points.at(-1);
    return true;
  }
  const points = models[row].points;
  const near = (its) => its.reduce((best, it) =>
    Math.abs(it.start - chosen.start) < Math.abs(best.start - chosen.start) ? it : best);
  const beside = (step) => near(models[Math.max(0, Math.min(models.length - 1, row + step))].points);
  const moves = {
    Home: () => points[0],
    End: () => points.at(-1),
    ArrowLeft: () => points.filter((it) => it.start < chosen.start).at(-1) ?? points[0],
    ArrowRight: () => points.find((it) => it.start > chosen.start) ?? points.at(-1),
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
  };
  chosen = moves[key]();
  return true;
}

// A step of 1, 2 or 5 times a power of ten, at most four of which make `most`.
function stepFor(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return [1, 2, 5, 10].map((it) => it * power).find((it) => most / it <= 4);
}

function scale(svg, most, right, y) {
  const step = stepFor(most);
  for (let count = 0; count * step <= most; count += 1) {
    const at = y(count * step);
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: right, y1: at, y2: at }));
    svg.append(shape("text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" }, count ? seconds(count * step) : "0"));
  }
}

// Lines between parts that follow one another; where a part had no inference there is a gap.
function line(points, x, y) {
  return points.map((it, at) => {
    const follows = at > 0 && it.start - points[at - 1].start < 1.5 * (it.end - it.start);
    return `${follows ? "L" : "M"}${x(it)},${y(it)}`;
  }).join("");
}

function drawModel(svg, readout, one, x, y) {
  const kind = colour(one.model);
  const high = (it) => y(it.high);
  const median = (it) => y(it.median);
  svg.append(shape("path", { class: `line high ${kind}`, d: line(one.points, x, high) }));
  svg.append(shape("path", { class: `line ${kind}`, d: line(one.points, x, median) }));
  for (const it of one.points) {
    const part = shape("g", { class: `part ${kind}`, "data-model": it.model, "data-start": it.start });
    if (isChosen(it)) part.classList.add("chosen");
    part.append(shape("path", { class: "cap", d: `M${x(it) - CAP},${high(it)}h${2 * CAP}` }));
    part.append(shape("path", { d: mark(it.model), transform: `translate(${x(it)} ${median(it)})` }));
    const [top, bottom] = [high(it) - REACH, median(it) + REACH];
    part.append(shape("rect", { class: "reach", x: x(it) - REACH, y: top, width: 2 * REACH, height: bottom - top }));
    part.addEventListener("pointerenter", () => {
      chosen = it;
      for (const other of svg.querySelectorAll(".chosen")) other.classList.remove("chosen");
      part.classList.add("chosen");
      describe(readout, it);
    });
    svg.append(part);
  }
}

export function drawLatency(place, readout, state, span) {
  const models = latencies(state, span);
  const outer = Math.max(NARROWEST, place.clientWidth);
  const width = outer - LEFT - RIGHT;
  const said = drawn(models).map((it) => `${it.model} median ${seconds(it.median)}, 95 % within ${seconds(it.high)}`);
  const svg = shape("svg", {
    viewBox: `0 -8 ${outer} ${HEIGHT + BELOW + 8}`, role: "img",
    "aria-label": `Inference times in the last ${span} seconds: ${said.join("; ") || "none"}`,
  });
  const x = (time) => LEFT + (width * (time - state.now + span)) / span;
  axis(svg, state, span, width, HEIGHT, x);
  if (models.length) {
    const most = 1.05 * Math.max(LEAST, ...drawn(models).flatMap((it) => it.points.map((part) => part.high)));
    const y = (value) => HEIGHT * (1 - value / most);
    // In the middle of a part, of which the first and the last may lie in sight by half.
    const middle = (it) => Math.min(x(state.now), Math.max(LEFT, x((it.start + it.end) / 2)));
    scale(svg, most, LEFT + width, y);
    for (const it of [...drawn(models)].reverse()) drawModel(svg, readout, it, middle, y);
  } else {
    svg.append(shape("text", { class: "empty", x: outer / 2, y: HEIGHT / 2 }, "No inference ended in this time."));
  }
  const now = models.flatMap((it) => it.points).find(isChosen);
  if (now) describe(readout, now);
  clear(place).append(svg);
}
