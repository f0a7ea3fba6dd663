// Which job ran on which core and when: a Gantt chart of T_pre and T_on, as in the paper's Figure 5.

import { BELOW, axis, clock, shape } from "/assets/axis.js";
import { clear, seconds } from "/assets/shape.js";

const LEFT = 84;
const RIGHT = 10;
const TALLEST = 26;
const SHORTEST = 7;
const ROOM = 460;
const LABEL_FROM = 13;
const AHEAD = 0.06; // of the window, for what is expected

let chosen = null; // the job that was pointed at, or reached by a key, last

function rowsOf(state) {
  const rows = [];
  const many = state.machines.length > 1;
  for (const machine of state.machines) {
    for (let core = 0; core < machine.cores; core += 1) {
      rows.push({ key: `${machine.name}/${core}`, name: many ? `${machine.name} ${core}` : `core ${core}` });
    }
  }
  return rows;
}

const PHASES = { pre: "T_pre", on: "T_on", fetch: "fetch" };

function jobsOf(state) {
  const past = state.timeline.map((it) => ({ ...it, runs: false }));
  const now = state.running.map((it) => ({ ...it, ended: state.now, failure: null, runs: true }));
  return [...past, ...now];
}

function describe(readout, job) {
  clear(readout);
  const name = document.createElement("b");
  name.textContent = `${PHASES[job.phase]} of ${job.model}`;
  const how = job.runs ? "runs for" : job.failure ? `failed (${job.failure}) after` : "took";
  const cores = job.cores.length > 1 ? `cores ${job.cores.join(", ")}` : `core ${job.cores[0]}`;
  readout.append(name, ` under ${job.suite} ${how} ${seconds(job.ended - job.started)}, from ${clock(job.started)}` +
    ` on ${cores} of ${job.machine}; job ${job.job}`);
}

function bar(svg, readout, job, row, box) {
  const kind = `${job.phase}${job.failure ? " failed" : ""}${job.job === chosen ? " chosen" : ""}`;
  const drawn = shape("rect", { class: `bar ${kind}`, "data-job": job.job, "data-row": row, rx: 2, ...box });
  drawn.append(shape("title", {}, `${job.model} ${PHASES[job.phase]}`));
  drawn.addEventListener("pointerenter", () => {
    chosen = job.job;
    for (const other of svg.querySelectorAll(".chosen")) other.classList.remove("chosen");
    for (const mine of svg.querySelectorAll(`[data-job="${CSS.escape(job.job)}"]`)) mine.classList.add("chosen");
    describe(readout, job);
  });
  svg.append(drawn);
  const room = Math.floor((box.width - 8) / 6.2);
  if (box.height >= LABEL_FROM && room >= 3 && !job.failure) {
    const text = job.model.length > room ? job.model.split("/")[0] : job.model;
    if (text.length <= room) {
      svg.append(shape("text", { class: "label", x: box.x + 5, y: box.y + box.height / 2 + 4 }, text));
    }
  }
}

// The jobs in sight, in the order of their beginnings.
function inSight(state, span) {
  const jobs = jobsOf(state).filter((it) => it.ended >= state.now - span);
  return jobs.sort((one, other) => one.started - other.started || one.cores[0] - other.cores[0]);
}

// Of jobs on rows above or below, those on the nearest row that has some, and of them the one that began nearest.
function across(jobs, rows, from, step) {
  const row = (job) => rows.findIndex((it) => it.key === `${job.machine}/${job.cores[0]}`);
  const here = row(from);
  const there = jobs.filter((it) => (row(it) - here) * step > 0);
  const distance = (it) => [Math.abs(row(it) - here), Math.abs(it.started - from.started)];
  there.sort((one, other) => {
    const [a, b] = [distance(one), distance(other)];
    return a[0] - b[0] || a[1] - b[1];
  });
  return there[0] ?? from;
}

// Chooses another job by a key: left and right in time, up and down between cores. Whether the key means something here.
export function chooseByKey(key, state, span) {
  const jobs = inSight(state, span);
  const place = jobs.findIndex((it) => it.job === chosen);
  const moves = {
    Home: () => jobs[0],
    End: () => jobs.at(-1),
    ArrowLeft: () => jobs[Math.max(0, place - 1)],
    ArrowRight: () => jobs[Math.min(jobs.length - 1, place + 1)],
    ArrowUp: () => across(jobs, rowsOf(state), jobs[place], -1),
    ArrowDown: () => across(jobs, rowsOf(state), jobs[place], 1),
  };
  if (!(key in moves) || jobs.length === 0) return false;
  chosen = (place < 0 ? jobs.at(-1) : moves[key]()).job;
  return true;
}

export function drawTimeline(place, readout, state, span) {
  const rows = rowsOf(state);
  const outer = Math.max(480, place.clientWidth);
  const width = outer - LEFT - RIGHT;
  const pitch = Math.max(SHORTEST, Math.min(TALLEST, Math.floor(ROOM / Math.max(1, rows.length))));
  const bottom = Math.max(pitch, rows.length * pitch);
  const x = (time) => LEFT + (width * (time - state.now + span)) / (span * (1 + AHEAD));
  const svg = shape("svg", {
    viewBox: `0 -5 ${outer} ${bottom + BELOW + 5}`, role: "img",
    "aria-label": `Jobs on ${rows.length} cores in the last ${span} seconds`,
  });
  const gap = pitch > 12 ? 3 : 1;
  const every = pitch >= 14 ? 1 : Math.ceil(14 / pitch);
  const places = new Map();
  rows.forEach((row, index) => {
    places.set(row.key, index);
    svg.append(shape("rect", { class: "track", x: LEFT, y: index * pitch, width, height: pitch - gap, rx: 2 }));
    if (index % every === 0) {
      svg.append(shape("text", { x: LEFT - 8, y: index * pitch + pitch / 2 + 3, "text-anchor": "end" }, row.name));
    }
  });
  axis(svg, state, span, width, bottom, x);
  svg.append(shape("line", { class: "now", x1: x(state.now), x2: x(state.now), y1: 0, y2: bottom }));
  for (const job of jobsOf(state)) {
    if (job.ended < state.now - span) continue;
    if (job.job === chosen) describe(readout, job);
    const from = Math.max(LEFT, x(job.started));
    for (const core of job.cores) {
      const row = `${job.machine}/${core}`;
      if (!places.has(row)) continue;
      const y = places.get(row) * pitch;
      const height = pitch - gap;
      bar(svg, readout, job, row, { x: from, y, width: Math.max(1.5, x(job.ended) - from), height });
      const end = job.runs ? Math.min(LEFT + width, x(job.expected_end)) : 0;
      if (end > x(state.now) + 2) {
        const rest = { x: x(state.now), y: y + 0.5, width: end - x(state.now), height: height - 1 };
        svg.append(shape("rect", { class: `expected ${job.phase}`, ...rest }));
      }
    }
  }
  if (!rows.length) svg.append(shape("text", { class: "empty", x: outer / 2, y: 18 }, "No machine is there."));
  clear(place).append(svg);
}
