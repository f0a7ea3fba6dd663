// Calls of the worker that has the key.

export class Client {
  #worker = new Worker("/predict/worker.js", { type: "module" });
  #waiting = new Map();
  #last = 0;
  #session = null;

  constructor() {
    this.#worker.addEventListener("message", ({ data }) => {
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.error === undefined) resolve(data.result);
      else reject(new Error(data.error));
    });
    this.#worker.addEventListener("error", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the page's worker cannot run"));
      this.#waiting.clear();
    });
  }

  // The module's size in bytes and its SHA-256, as the worker found it.
  load() {
    return this.#call("load");
  }

  // Scores of a sample. A session is opened and keys are made where there are none; `tell(step, facts)` is called meanwhile.
  // Unless `light`, no service is asked that floods its results lightly.
  async predict(model, sample, light, tell) {
    // What was accepted for a session before is not accepted for this sample.
    const kept = this.#session?.model === model.name && (light || this.#session.statistical);
    if (!kept) await this.#open(model, light, tell);
    try {
      return await this.#call("predict", { sample });
    } catch (error) {
      this.#session = null;
      if (!kept) throw error;
    }
    // A session that was silent for long has ended: another has other keys.
    await this.#open(model, light, tell);
    return this.#call("predict", { sample });
  }

  async #open(model, light, tell) {
    this.#session = null;
    const facts = await this.#call("open", { address: model.address, hash: model.program, light });
    tell("plan", facts);
    tell("keys", await this.#call("prepare"));
    this.#session = { model: model.name, statistical: facts.statistical };
  }

  #call(call, given) {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call, given });
    });
  }
}
