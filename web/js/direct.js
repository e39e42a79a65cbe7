// Models in this very thread: for workers, for Node, and for tests. Pages take `index.js`, whose models
// run in a worker.

import { BOUNDS } from "./bounds.js";
import { chosenDevice } from "./device.js";
import { failure } from "./failure.js";
import { fromWasm, toTensor, toWasm } from "./tensor.js";

/** A module of WebAssembly that was started. Its calls, which may be suspended, run one after the other. */
class Module {
  #last = Promise.resolve();

  constructor(wasm) {
    this.wasm = wasm;
  }

  /** Runs `body` when all that was begun before has ended. */
  inTurn(body) {
    const result = this.#last.then(body);
    this.#last = result.catch(() => {});
    return result;
  }
}

const modules = {};

/** Starts the module for a device; `source` is its URL, its bytes, or nothing for the file beside this. */
export function start({ device = "cpu", source } = {}) {
  modules[device] ??= (async () => {
    const wasm = device === "webgpu" ? await import("./ferroflow_webgpu.js") : await import("./ferroflow_web.js");
    await wasm.default(source === undefined ? undefined : { module_or_path: source });
    return new Module(wasm);
  })();
  return modules[device];
}

function limits(wasm, { deadline, memory, rounds, printed }) {
  return new wasm.WebLimits(deadline, memory, rounds, printed);
}

/** A loaded model. */
export class DirectModel {
  #module;
  #model;
  #bounds;

  constructor(module, model, device, bounds) {
    this.#module = module;
    this.#model = model;
    this.#bounds = bounds;
    /** What it computes on: `"cpu"` or `"webgpu"`. */
    this.device = device;
    /** The signatures: `{name, inputs, outputs}`. */
    this.signatures = JSON.parse(model.signatures());
  }

  /** A signature by name; without one the default, or the only one. */
  signature(name) {
    const found = name === undefined
      ? this.signatures.find((each) => each.name === "serving_default") ?? this.signatures[0]
      : this.signatures.find((each) => each.name === name);
    if (found) return found;
    throw failure("NotFoundError", `there is no signature ${name}; there are ${this.signatures.map((s) => s.name).join(", ")}`);
  }

  /** Calls a signature: inputs by name; gives `{outputs, elapsed, steps}`. */
  run(inputs, options = {}) {
    return this.#module.inTurn(() => this.#run(inputs, options));
  }

  async #run(inputs, options) {
    const { wasm } = this.#module;
    const signature = this.signature(options.signature);
    const names = Object.keys(inputs);
    const spec = (name) => signature.inputs.find((input) => input.name === name);
    const tensors = names.map((name) => toWasm(wasm, toTensor(inputs[name], spec(name))));
    const bounds = limits(wasm, { ...this.#bounds, ...options });
    const begun = performance.now();
    const run = await wasm.runModel(this.#model, signature.name, names, tensors, bounds, options.steps ?? false);
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

  /** Gives its memory back, when its calls have ended. */
  free() {
    return this.#module.inTurn(() => this.#model.free());
  }
}

/** The devices by the names that the runtime has for them. */
const DEVICES = { cpu: undefined, webgpu: "WGPU:0" };

/** Loads a model from its files: `{path: Uint8Array}`, paths from the model's folder. */
export async function loadFiles(files, options = {}) {
  const device = await chosenDevice(options.device);
  const module = await start({ device });
  const bounds = { ...BOUNDS, ...options.bounds };
  const names = Object.keys(files);
  const contents = names.map((name) => files[name]);
  const { wasm } = module;
  const model = await module.inTurn(() =>
    wasm.loadModel(names, contents, options.tags, bounds.memory, DEVICES[device], limits(wasm, bounds)));
  return new DirectModel(module, model, device, bounds);
}

/** The paths of a model's other files, as far as those that are there tell. */
export async function otherFiles(files, { device } = {}) {
  const { wasm } = await start({ device: await chosenDevice(device) });
  const index = files["variables/variables.index"];
  const data = index ? wasm.dataFiles(index).map((name) => `variables/${name}`) : [];
  const model = files["saved_model.pb"];
  return [...(model ? wasm.assetFiles(model) : []), ...data];
}
