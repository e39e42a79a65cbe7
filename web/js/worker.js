// A worker with models in it. Each message is `{id, method, args}`; the answer has the same id.

import { chosenDevice } from "./device.js";
import { loadFiles, otherFiles, start } from "./direct.js";
import { fromUrl } from "./sources.js";

const models = new Map();
let next = 0;

const methods = {
  async load({ url, files, options }, tell) {
    const device = await chosenDevice(options.device);
    await start({ device });
    const others = (known) => otherFiles(known, { device });
    const found = files ?? await fromUrl(url, others, { ...options, onProgress: tell });
    tell({ begins: "load" });
    const model = await loadFiles(found, { ...options, device });
    models.set(next, model);
    return { model: next++, device, signatures: model.signatures, memoryInUse: model.memoryInUse };
  },

  run({ model, inputs, options }) {
    return models.get(model).run(inputs, options);
  },

  free({ model }) {
    models.get(model)?.free();
    models.delete(model);
  },
};

/** The buffers of results, which are handed over and not copied. */
function buffers(result) {
  const all = Object.values(result?.outputs ?? {}).flatMap(({ data }) => (ArrayBuffer.isView(data) ? [data] : data));
  return [...new Set(all.map((view) => view.buffer))];
}

self.onmessage = async ({ data: { id, method, args } }) => {
  const tell = (progress) => self.postMessage({ id, progress });
  try {
    const result = await methods[method](args, tell);
    self.postMessage({ id, result }, buffers(result));
  } catch (error) {
    // What cannot unwind, such as a stack that is full, leaves the module as it was in the middle.
    const isFull = error instanceof RangeError && error.message.includes("call stack");
    const lost = isFull || error instanceof WebAssembly.RuntimeError;
    self.postMessage({ id, error: { name: error.name, message: error.message, lost } });
  }
};
