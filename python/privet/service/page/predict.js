// The page that asks a model of suite ckks: a picture or a row of numbers goes to the worker, which encrypts it, and
// scores come back.

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
  const rows = [...costs].map(([name, text]) => element("tr", {}, element("td", {}, name), element("td", {}, text)));
  clear(at("costs")).append(...rows);
}

function traffic(phase) {
  return `${seconds(phase.seconds)}, ${bytes(phase.bytes_sent)} sent, ${bytes(phase.bytes_received)} received`;
}

// A row as long as this whose numbers have no names is taken for a square picture, if it can be one.
const PICTURE = 64;

// The most numbers that have a field each; more of them come as a row.
const MOST_FIELDS = 100;

// What a model takes: a picture, by its width, height and colours, or else so many numbers. The first axis is the batch.
function form(shape, features) {
  const count = shape.slice(1).reduce((product, it) => product * it, 1);
  const [colours, height, width] = [1, ...shape.slice(1)].slice(-3);
  if (shape.length > 2 && [1, 3].includes(colours) && count === colours * height * width) {
    return { width, height, colours };
  }
  const side = Math.sqrt(count);
  const square = shape.length === 2 && features.length === 0 && count >= PICTURE && Number.isInteger(side);
  return square ? { width: side, height: side, colours: 1 } : { count };
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

async function list() {
  const { models: rows } = await ask("/v2/models");
  for (const row of rows.filter((it) => it.ready && it.suites.includes("ckks"))) {
    const path = `/v2/models/${row.name}/versions/${row.version}`;
    const model = await ask(path);
    // What comes before the private part is not computed here.
    if (model.inputs.length !== 1 || model.outputs.length !== 1 || model.privet.client_side.length > 0) continue;
    const name = `${row.name}/${row.version}`;
    models.set(name, {
      ...form(model.inputs[0].shape, model.privet.features), name, program: model.privet.program, address: `wss://${location.host}${path}/session`,
      range: model.privet.input_range ?? [0, 1], description: model.privet.description,
      labels: model.privet.labels, features: model.privet.features, most: model.privet.magnitudes[model.inputs[0].name],
    });
    at("model").append(element("option", { value: name }, name));
  }
  if (models.size === 0) throw new Error("no model with one input and one output is served in suite ckks");
}

const chosen = () => models.get(at("model").value);

function look() {
  const model = chosen();
  if (model?.width === undefined) return null;
  const { width, height, colours } = model;
  const seen = pad.levels(width, height, colours);
  Object.assign(at("seen"), { width, height });
  const shown = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let at = 0; at < 3 * width * height; at += 1) {
    const [pixel, colour] = [Math.floor(at / 3), at % 3];
    shown[4 * pixel + colour] = seen[pixel + (colours === 1 ? 0 : colour * width * height)];
  }
  at("seen").getContext("2d", { willReadFrequently: true }).putImageData(new ImageData(shown, width, height), 0, 0);
  return seen;
}

// Shows the form of the chosen model.
function choose() {
  const model = chosen();
  const picture = model.width !== undefined;
  for (const id of ["picture", "from-file", "clear"]) at(id).hidden = !picture;
  at("numbers").hidden = picture;
  at("description").textContent = model.description;
  clear(at("fields"));
  if (picture) {
    look();
    return;
  }
  if (model.count > MOST_FIELDS) {
    at("fields").textContent = `This model takes ${model.count} numbers: give them as a row.`;
    return;
  }
  const [low, high] = model.range;
  for (let place = 0; place < model.count; place += 1) {
    const name = model.features[place] ?? `number ${place + 1}`;
    const bounds = { min: -model.most, max: model.most, placeholder: `${low} to ${high}` };
    const kind = { type: "number", step: "any", required: "", autocomplete: "off" };
    const field = element("input", { ...kind, ...bounds });
    at("fields").append(element("label", {}, name, field));
  }
}

const fields = () => [...at("fields").querySelectorAll("input")];

// The numbers that are to be encrypted.
function given(model) {
  if (model.width !== undefined) {
    const [low, high] = model.range;
    return Float64Array.from(look(), (level) => low + (level / 255) * (high - low));
  }
  if (model.count > MOST_FIELDS) {
    const numbers = row(at("row").value, model.count);
    const place = numbers.findIndex((it) => Math.abs(it) > model.most);
    if (place >= 0) throw new Error(`number ${place + 1}: a number from ${-model.most} to ${model.most} is needed`);
    return Float64Array.from(numbers);
  }
  const missing = fields().find((field) => !field.checkValidity());
  if (missing !== undefined) {
    missing.focus();
    const name = missing.parentNode.firstChild.textContent;
    throw new Error(`${name}: a number from ${missing.min} to ${missing.max} is needed`);
  }
  return Float64Array.from(fields(), (field) => field.valueAsNumber);
}

// The numbers of a row of a table.
function row(text, count) {
  const numbers = text.trim().split(/[\s,;]+/).filter((it) => it !== "").map(Number);
  if (numbers.length !== count || !numbers.every(Number.isFinite)) {
    throw new Error(`a row of ${count} numbers is needed`);
  }
  return numbers;
}

// Fills the form from a row.
function fill(text) {
  try {
    const numbers = row(text, chosen().count);
    fields().forEach((field, place) => { field.value = numbers[place]; });
    say("ready", "good");
  } catch (error) {
    say(error.message, "bad");
  }
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

// The class with the highest score; a score that is alone is the answer itself.
function show(scores, labels) {
  const best = scores.indexOf(Math.max(...scores));
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const name = (place) => labels[place] ?? String(place);
  clear(at("scores"));
  if (scores.length === 1) {
    at("answer").textContent = scores[0].toFixed(3);
    return;
  }
  at("answer").textContent = name(best);
  at("scores").append(...scores.map((score, place) => element("tr", {},
    element("td", {}, name(place)),
    element("td", {}, element("meter", { min: low, max: high, value: score, "aria-label": `score of ${name(place)}` })),
    element("td", { class: "number" }, score.toFixed(3)))));
}

async function predict() {
  const model = chosen();
  at("predict").disabled = true;
  at("answer").textContent = "";
  say("planning");
  try {
    const { scores, cost: phase } = await client.predict(
      model, given(model), at("light").checked, (step, facts) => steps[step](facts),
    );
    show([...scores], model.labels);
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
    choose();
    at("predict").disabled = false;
    say("ready", "good");
  } catch (error) {
    say(error.message, "bad");
  }
}

at("predict").addEventListener("click", predict);
at("clear").addEventListener("click", () => pad.clear());
at("model").addEventListener("change", choose);
at("row").addEventListener("change", ({ target }) => fill(target.value));
at("file").addEventListener("change", ({ target }) => {
  if (target.files.length > 0) pad.show(target.files[0], chosen().colours).catch(() => say("this file is no picture", "bad"));
});
start();
