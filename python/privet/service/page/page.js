// The operator's page: takes the service's state every second and draws it. No library, no request
// to anywhere else.

import { choosePart, drawLatency, latencies, swatch } from "/assets/latency.js";
import { chooseByKey, drawTimeline } from "/assets/timeline.js";
import { age, amount, bytes, clear, element, seconds } from "/assets/shape.js";

const QUEUES = [
  ["pre", "waits for preparation"],
  ["transit", "prepared, request to come"],
  ["waiting", "its notice is being prepared"],
  ["ready", "waits for inference"],
];
const SHOWN = 8;
const WINDOW = 600;
const SILENT_MS = 5000;
const POLL_MS = 2000;

const at = (id) => document.getElementById(id);
let latest = null;
let heard = 0;

function health(text, kind) {
  const place = at("health");
  place.textContent = text;
  place.className = `health ${kind}`;
}

function drawFacts(state) {
  const cores = state.machines.reduce((sum, it) => sum + it.cores, 0);
  const count = state.machines.length;
  const facts = [
    ["policy", state.policy],
    ["machines", `${count} with ${amount(cores, "core")}`],
    ["up", age(state.now - state.started)],
    ["release", state.version],
  ];
  clear(at("facts")).append(
    ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
  if (state.draining) health("draining", "bad");
  else if (state.not_ready) health(state.not_ready, "bad");
  else health("ready", "good");
}

function tile(name, value, more, share) {
  const parts = [
    element("div", { class: "name" }, name),
    element("div", { class: "value" }, value),
    element("div", { class: "more" }, more),
  ];
  if (share !== undefined) {
    const fill = element("span");
    fill.style.width = `${Math.min(100, 100 * share)}%`;
    parts.push(element("div", { class: "meter" }, fill));
  }
  return element("div", { class: "tile" }, ...parts);
}

function drawTiles(state) {
  const sum = (field) => state.machines.reduce((total, it) => total + it[field], 0);
  const running = (phase) => state.running.filter((it) => it.phase === phase).length;
  const last = state.last;
  const cores = sum("cores");
  const memory = sum("memory");
  const stock = state.stock.reduce((total, it) => total + it.entries, 0);
  const ended = state.counts.ended;
  const done = ended.done || 0;
  const wrong = Object.entries(ended).filter(([name]) => name !== "done").reduce((n, [, it]) => n + it, 0);
  const waiting = QUEUES.filter(([name]) => name !== "transit").reduce(
    (total, [name]) => total + (name === "waiting" ? 0 : state.queues[name].length), 0);
  const backlog = state.backlog_seconds === null ? "no machine" : `${seconds(state.backlog_seconds)} of work`;
  clear(at("tiles")).append(
    tile("Cores", `${sum("cores_taken")} / ${cores}`, cores ? `${Math.round(100 * last.utilisation)} % busy in the last minute` : "no machine", cores ? sum("cores_taken") / cores : 0),
    tile("Memory", bytes(sum("memory_taken")), `of ${bytes(memory)}`, memory ? sum("memory_taken") / memory : 0),
    tile("Preparing", running("pre"), "jobs in T_pre"),
    tile("Inferring", running("on"), "jobs in T_on"),
    tile("Queued", waiting, backlog),
    tile("Stock", stock, "material entries ready"),
    tile("Delay D", last.mean_delay === null ? "\u2013" : seconds(last.mean_delay),
      last.mean_delay === null ? "no request in the last minute" : `95 % within ${seconds(last.delay_95)}; wait W ${seconds(last.mean_wait)}`),
    tile("Done", done, wrong ? `${wrong} ended otherwise` : `${last.per_second.toFixed(last.per_second < 10 ? 2 : 0)} a second lately`),
  );
}

function drawQueues(state) {
  clear(at("queues")).append(
    ...QUEUES.map(([name, about]) => {
      const queue = state.queues[name];
      const rows = queue.first.slice(0, SHOWN).map((it) =>
        element("li", {},
          element("span", {}, `${it.model} ${it.suite.split(" ")[0]}${it.batch > 1 ? ` \u00d7${it.batch}` : ""}`),
          element("span", {}, `${it.client.slice(0, 6)} \u00b7 ${age(state.now - it.since)}`)));
      const more = queue.length - rows.length;
      if (more > 0) rows.push(element("li", {}, element("span", {}, `and ${more} more`), element("span")));
      const list = rows.length ? element("ol", {}, ...rows) : element("div", { class: "none" }, "empty");
      return element("div", { class: "queue", "data-queue": name },
        element("h3", {}, `${name} ${queue.length}`, element("span", {}, about)), list);
    }),
  );
}

function drawTable(id, heads, rows, none) {
  const kind = (index) => (heads[index].startsWith("#") ? { class: "number" } : {});
  const title = (head) => head.replace("#", "");
  const body = rows.length
    ? rows.map((row) => element("tr", {}, ...row.map((cell, index) =>
        cell instanceof Element ? cell : element("td", kind(index), cell))))
    : [element("tr", {}, element("td", { class: "none", colspan: heads.length }, none))];
  clear(at(id)).append(
    element("thead", {}, element("tr", {}, ...heads.map((head, index) => element("th", kind(index), title(head))))),
    element("tbody", {}, ...body),
  );
}

function drawTables(state) {
  drawTable("models", ["Model", "#Version", "Suites", "State"], state.models.map((it) => {
    const text = it.error ? (it.ready ? `earlier files: ${it.error}` : it.error) : "ready";
    const end = element("td", { class: it.error ? "bad" : "good" }, text);
    return [it.model, it.version ?? "", it.suites.join(", "), end];
  }), "The repository is empty.");
  drawTable("stock", ["Model", "Suite", "#Pieces"],
    state.stock.map((it) => [it.model, it.suite, it.entries]), "No material is ready.");
  drawTable("profiles", ["Model", "Suite", "Phase", "#Cores", "#Time", "#Memory"],
    state.profiles.map((it) => [it.model, it.suite, `T_${it.phase}`, it.cores, seconds(it.seconds), bytes(it.memory)]),
    "Nothing was asked for yet.");
  const rows = [["requests", state.counts.requests], ["notices", state.counts.notices]];
  for (const group of ["ended", "jobs", "material", "refused"]) {
    for (const [name, count] of Object.entries(state.counts[group])) rows.push([`${group}: ${name}`, count]);
  }
  drawTable("counts", ["What", "#Count"], rows, "");
}

function drawLatencies(state, span) {
  drawLatency(at("latency"), at("latency-readout"), state, span);
  const models = latencies(state, span);
  drawTable("latencies", ["Model", "#Done", "#Median", "#95 % within"], models.map((it) => [
    element("td", {}, swatch(models, it.model), it.model), it.count, seconds(it.median), seconds(it.high),
  ]), "No inference ended in this time.");
}

function draw() {
  if (latest === null) return;
  const span = Number(at("window").value);
  drawFacts(latest);
  drawTiles(latest);
  drawTimeline(at("timeline"), at("readout"), latest, span);
  drawLatencies(latest, span);
  drawQueues(latest);
  drawTables(latest);
  document.body.dataset.drawn = String(latest.now);
}

// The keys of a chart choose in it; what is chosen is read out.
function byKeys(chart, readout, spoken, choose) {
  at(chart).addEventListener("keydown", (event) => {
    if (latest === null || !choose(event.key, latest, Number(at("window").value))) return;
    event.preventDefault();
    draw();
    at(spoken).textContent = at(readout).textContent;
  });
}

byKeys("timeline", "readout", "spoken", chooseByKey);
byKeys("latency", "latency-readout", "latency-spoken", choosePart);

// An event has only the runs since the one before.
function take(state) {
  const runs = new Map([...(latest?.timeline ?? []), ...state.timeline].map((run) => [run.job, run]));
  state.timeline = [...runs.values()].filter((run) => run.ended > state.now - WINDOW);
  latest = state;
  heard = Date.now();
  draw();
}

async function poll() {
  if (Date.now() - heard < SILENT_MS) return;
  try {
    const answer = await fetch("/v2/state", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    take(await answer.json());
  } catch {
    health("no answer from the service", "bad");
  }
}

const events = new EventSource("/v2/events");
events.addEventListener("state", (event) => take(JSON.parse(event.data)));
setInterval(poll, POLL_MS);
at("window").addEventListener("change", draw);
window.addEventListener("resize", draw);
