// SavedModels in a page, each in a worker of its own: nothing here blocks the page, and a worker that does
// not end in time is ended.

import { BOUNDS } from "./bounds.js";
import { failure } from "./failure.js";
import { fromFiles } from "./sources.js";

export { fromDrop } from "./sources.js";
export { texts } from "./tensor.js";

/** The time beyond a call's deadline after which its worker is ended. Calls end themselves before. */
const GRACE = 2_000;

/** A worker, and the calls that wait for it. */
class Remote {
  #worker;
  #waiting = new Map();
  #next = 0;
  #end;

  constructor() {
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#answer(data);
    this.#worker.onerror = ({ message }) => this.terminate(failure("InternalError", message ?? "the worker has failed"));
  }

  call(method, args, { deadline, transfer = [], tell } = {}) {
    if (this.#end) return Promise.reject(this.#end);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const watch = () => {
        const late = () => this.terminate(failure("DeadlineExceededError", `the call did not end within ${deadline} ms: its worker was ended, and the model with it`));
        return Number.isFinite(deadline) ? setTimeout(late, deadline + GRACE) : undefined;
      };
      // Downloads take what they take: the time of a load begins when the files are there.
      const waits = { resolve, reject, tell, watch, timer: method === "load" ? undefined : watch() };
      this.#waiting.set(id, waits);
      this.#worker.postMessage({ id, method, args }, transfer);
    });
  }

  #answer({ id, progress, result, error }) {
    const call = this.#waiting.get(id);
    if (!call) return;
    if (progress?.begins) {
      call.timer = call.watch();
    } else if (progress) {
      call.tell?.(progress);
    } else {
      this.#waiting.delete(id);
      clearTimeout(call.timer);
      if (!error) return call.resolve(result);
      call.reject(failure(error.name, error.message));
      if (error.lost) this.terminate(failure("UnavailableError", `the model is gone: ${error.message}`));
    }
  }

  /** Ends the worker; calls that wait, and later ones, fail with `error`. */
  terminate(error = failure("UnavailableError", "the model was closed")) {
    if (this.#end) return;
    this.#end = error;
    this.#worker.terminate();
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
  }
}

/** A model in a worker. */
export class Model {
  #remote;
  #number;
  #bounds;

  constructor(remote, { model, device, signatures, memoryInUse }, bounds) {
    this.#remote = remote;
    this.#number = model;
    this.#bounds = bounds;
    this.device = device;
    this.signatures = signatures;
    this.memoryInUse = memoryInUse;
  }

  /** Calls a signature; gives the outputs by name. */
  async run(inputs, options = {}) {
    return (await this.measure(inputs, { ...options, steps: false })).outputs;
  }

  /** Calls a signature; gives `{outputs, elapsed, steps}`, with what each op took. */
  measure(inputs, options = {}) {
    const bounds = { ...this.#bounds, ...options };
    const args = { model: this.#number, inputs, options: { steps: true, ...options } };
    return this.#remote.call("run", args, { deadline: bounds.deadline });
  }

  /** Ends its worker. */
  close() {
    this.#remote.terminate();
  }
}

/**
 * Loads a SavedModel: from the URL of its folder, from a `FileList` or `File`s, or from `{path: bytes}`.
 */
export async function load(source, { tags, device, bounds = {}, onProgress, cache } = {}) {
  const remote = new Remote();
  const all = { ...BOUNDS, ...bounds };
  const options = { tags, device, bounds: all, cache };
  const isUrl = typeof source === "string" || source instanceof URL;
  try {
    const url = isUrl ? new URL(source, globalThis.location?.href).href : undefined;
    const files = isUrl ? undefined : await fromFiles(source);
    const loaded = await remote.call("load", { url, files, options }, { deadline: all.deadline, tell: onProgress });
    return new Model(remote, loaded, all);
  } catch (error) {
    remote.terminate(error);
    throw error;
  }
}
