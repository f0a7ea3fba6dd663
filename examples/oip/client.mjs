// Asks a gateway for a prediction, in Node 18 or newer or any runtime with `fetch`.
//
// Usage: node client.mjs URL MODEL < numbers

import { readFileSync } from "node:fs";

async function call(url, body) {
  const headers = { "Content-Type": "application/json" };
  const request = body && { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(url, request);
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

const [url, model] = process.argv.slice(2);
const place = `${url}/v2/models/${model}`;
const wanted = (await call(place)).inputs[0];
const shape = wanted.shape.map((size) => Math.max(size, 1)); // -1 is an axis of any length
const data = readFileSync(0, "utf8").trim().split(/\s+/).map(Number);
const inputs = [{ name: wanted.name, datatype: "FP32", shape, data }];
console.log((await call(`${place}/infer`, { inputs })).outputs[0].data.join(" "));
