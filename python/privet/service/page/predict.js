// The page that asks a model of suite ckks: a picture goes to the worker, which encrypts it, and scores come back.

import { Client } from "./client.js";
import { Pad } from "./pad.js";
import { bytes, clear, element, seconds } from "./shape.js";

const at = (id) => document.getElementById(id);
const client = new Client();
const models = new Map();
const costs = new Map();

function say(text, kind = "") {
  at("status").textContent = text;
  at("status").className = `health ${kind}`;
}

function cost(what, text) {
  costs.set(what, text);
  const rows = [...costs].map(([name, told]) => element("tr", {}, element("td", {}, name), element("td", {}, told)));
  clear(at("costs")).append(...rows);
}

function traffic(phase) {
  return `${seconds(phase.seconds)}, ${bytes(phase.bytes_sent)} sent, ${bytes(phase.bytes_received)} received`;
}

// Width and height of a model's pictures; null if it takes none. The first axis is the batch.
function size(shape) {
  const [height, width] = shape.slice(-2);
  const count = shape.slice(1).reduce((product, it) => product * it, 1);
  if (shape.length > 2 && count === height * width) return { width, height };
  const side = Math.sqrt(count);
  return shape.length === 2 && Number.isInteger(side) ? { width: side, height: side } : null;
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

async function list() {
  const { models: rows } = await ask("/v2/models");
  for (const row of rows.filter((it) => it.ready && it.suites.includes("ckks"))) {
    const path = `/v2/models/${row.name}/versions/${row.version}`;
    const told = await ask(path);
    const picture = told.inputs.length === 1 && told.outputs.length === 1 ? size(told.inputs[0].shape) : null;
    // What comes before the private part is not computed here.
    if (picture === null || told.privet.client_side.length > 0) continue;
    const name = `${row.name}/${row.version}`;
    models.set(name, {
      ...picture, name, program: told.privet.program, address: `wss://${location.host}${path}/session`,
      range: told.privet.input_range ?? [0, 1],
    });
    at("model").append(element("option", { value: name }, name));
  }
  if (models.size === 0) throw new Error("no model for pictures is served in suite ckks");
}

const chosen = () => models.get(at("model").value);

function look() {
  const model = chosen();
  if (model === undefined) return null;
  const seen = pad.levels(model.width, model.height);
  Object.assign(at("seen"), { width: model.width, height: model.height });
  const grey = new Uint8ClampedArray(4 * seen.length);
  seen.forEach((level, pixel) => grey.set([level, level, level, 255], 4 * pixel));
  at("seen").getContext("2d", { willReadFrequently: true }).putImageData(new ImageData(grey, model.width, model.height), 0, 0);
  return seen;
}

const pad = new Pad(at("pad"), () => look());

const steps = {
  plan: ({ plan, statistical }) => {
    cost("Flooding of results", statistical ? "statistical" : "light, which is weaker");
    const { log_n: logN, depth } = plan.parameters;
    cost("Plan", `ring of degree 2^${logN}, ${depth} levels, ${plan.keys} evaluation keys`);
    say("making keys");
  },
  keys: (phase) => {
    cost("Keys, once for a session", traffic(phase));
    say("computing");
  },
};

function show(scores) {
  const best = scores.indexOf(Math.max(...scores));
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  at("answer").textContent = String(best);
  clear(at("scores")).append(...scores.map((score, label) => element("tr", {},
    element("td", {}, label),
    element("td", {}, element("meter", { min: low, max: high, value: score })),
    element("td", { class: "number" }, score.toFixed(3)))));
}

async function predict() {
  const model = chosen();
  const seen = look();
  at("predict").disabled = true;
  at("answer").textContent = "";
  say("planning");
  try {
    const [low, high] = model.range;
    const sample = Float64Array.from(seen, (level) => low + (level / 255) * (high - low));
    const { scores, cost: phase } = await client.predict(
      model, sample, at("light").checked, (step, facts) => steps[step](facts),
    );
    show(scores);
    cost("Prediction", traffic(phase));
    say("ready", "good");
  } catch (error) {
    say(error.message, "bad");
  } finally {
    at("predict").disabled = false;
  }
}

async function start() {
  try {
    const [module] = await Promise.all([client.load(), list()]);
    cost("Module", bytes(module.bytes));
    at("hash").textContent = module.hash;
    look();
    at("predict").disabled = false;
    say("ready", "good");
  } catch (error) {
    say(error.message, "bad");
  }
}

at("predict").addEventListener("click", predict);
at("clear").addEventListener("click", () => pad.clear());
at("model").addEventListener("change", look);
at("file").addEventListener("change", ({ target }) => {
  if (target.files.length > 0) pad.show(target.files[0]).catch(() => say("this file is no picture", "bad"));
});
start();
