// Models in this very thread: for workers, for Node, and for tests. Pages take `index.js`, whose models
// run in a worker.

import * as wasm from "./ferroflow_web.js";
import { BOUNDS } from "./bounds.js";
import { fromWasm, toTensor, toWasm } from "./tensor.js";

let starting;

/** Starts the module of WebAssembly; `source` is its URL, its bytes, or nothing for the file beside this. */
export function start(source) {
  starting ??= wasm.default(source === undefined ? undefined : { module_or_path: source });
  return starting;
}

function limits({ deadline, memory, rounds, printed }) {
  return new wasm.WebLimits(deadline, memory, rounds, printed);
}

/** A loaded model. */
export class DirectModel {
  #model;
  #bounds;

  constructor(model, bounds) {
    this.#model = model;
    this.#bounds = bounds;
    /** The signatures: `{name, inputs, outputs}`. */
    this.signatures = JSON.parse(model.signatures());
  }

  /** A signature by name; without one the default, or the only one. */
  signature(name) {
    const found = name === undefined
      ? this.signatures.find((each) => each.name === "serving_default") ?? this.signatures[0]
      : this.signatures.find((each) => each.name === name);
    if (found) return found;
    const error = new Error(`there is no signature ${name}; there are ${this.signatures.map((s) => s.name).join(", ")}`);
    error.name = "NotFoundError";
    throw error;
  }

  /** Calls a signature: inputs by name; gives `{outputs, elapsed, steps}`. */
  run(inputs, options = {}) {
    const signature = this.signature(options.signature);
    const names = Object.keys(inputs);
    const spec = (name) => signature.inputs.find((input) => input.name === name);
    const tensors = names.map((name) => toWasm(wasm, toTensor(inputs[name], spec(name))));
    const begun = performance.now();
    const run = this.#model.run(signature.name, names, tensors, limits({ ...this.#bounds, ...options }), options.steps ?? false);
    const elapsed = performance.now() - begun;
    try {
      const results = run.tensors().map(fromWasm);
      const outputs = Object.fromEntries(run.names().map((name, index) => [name, results[index]]));
      return { outputs, elapsed, steps: run.steps() };
    } finally {
      run.free();
    }
  }

  /** Bytes that its variables and calls hold. */
  get memoryInUse() {
    return this.#model.memoryInUse;
  }

  /** Gives its memory back. */
  free() {
    this.#model.free();
  }
}

/** Loads a model from its files: `{path: Uint8Array}`, paths from the model's folder. */
export async function loadFiles(files, options = {}) {
  await start();
  const bounds = { ...BOUNDS, ...options.bounds };
  const names = Object.keys(files);
  const contents = names.map((name) => files[name]);
  const model = wasm.WebModel.load(names, contents, options.tags, bounds.memory, limits(bounds));
  return new DirectModel(model, bounds);
}

/** The paths of a model's other files, as far as those that are there tell. */
export async function otherFiles(files) {
  await start();
  const index = files["variables/variables.index"];
  const data = index ? wasm.dataFiles(index).map((name) => `variables/${name}`) : [];
  const model = files["saved_model.pb"];
  return [...(model ? wasm.assetFiles(model) : []), ...data];
}
