// Where the key is: a worker that runs the client of suite ckks, Go compiled to WebAssembly. It answers each message
// `{id, call, given}` by `{id, result}` or `{id, error}`; samples and scores pass between it and the page only.

import "./ckks.js";

async function load() {
  const answer = await fetch("./ckks.wasm", { cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.json()).error);
  const code = await answer.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", code));
  const go = new Go();
  const { instance } = await WebAssembly.instantiate(code, go.importObject);
  go.run(instance);
  const hash = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { bytes: code.byteLength, hash };
}

const loading = load();
loading.catch(() => {});

const calls = {
  load: () => loading,
  open: ({ address, hash, light }) => privetCkks.open(address, hash, light),
  prepare: () => privetCkks.prepare(),
  predict: ({ sample }) => privetCkks.predict(sample),
};

async function act({ call, given }) {
  await loading;
  return calls[call](given);
}

addEventListener("message", async ({ data }) => {
  try {
    postMessage({ id: data.id, result: await act(data) });
  } catch (error) {
    postMessage({ id: data.id, error: error.message });
  }
});
