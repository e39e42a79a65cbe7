// What the check does in the page.

import { load } from "../index.js";
import { checkCase } from "./cases.js";

const bytes = async (url) => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

/**
 * A recorded case: the model comes by its URL, as a page has it, or as files where it is text. Gives why it fails, or `null`, and how
 * many steps ran on which device.
 */
async function runCase({ url, description, files, device }) {
  const read = (path) => bytes(url + path);
  const asFiles = async () => Object.fromEntries(await Promise.all(files.map(async (path) => [path, await read(`model/${path}`)])));
  const source = async () => (files.includes("saved_model.pb") ? `${url}model/` : asFiles());
  const ran = {};
  const run = async (model, signature, inputs) => {
    const { outputs, steps } = await model.measure(inputs, { signature });
    for (const step of steps) ran[step.device] = (ran[step.device] ?? 0) + 1;
    return outputs;
  };
  const loaded = async (tags) => load(await source(), { tags, device });
  const why = await checkCase(description, read, { load: loaded, run, close: (model) => model.close() });
  return { why, ran };
}

const nameOf = (promise) => promise.then(() => "no error", (error) => error.name);

/** Whether bounds hold, and whether the page goes on meanwhile. */
async function hostile(url, device) {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  const model = await load(url, { device, bounds: { memory: 2 ** 28 } });
  const timed = async (inputs, options) => {
    const begun = performance.now();
    const error = await nameOf(model.run(inputs, options));
    return { error, milliseconds: performance.now() - begun };
  };
  const found = {
    endless: await timed({ x: [1] }, { signature: "endless", deadline: 500 }),
    rounds: await timed({ x: [1] }, { signature: "endless", rounds: 1000 }),
    product: await timed({ n: 4096 }, { signature: "product", deadline: 500 }),
    memory: await timed({ n: 1 << 28 }, { signature: "memory", memory: 2 ** 26 }),
    whole: await timed({ n: 1 << 27 }, { signature: "memory" }),
  };
  const [after] = (await model.run({ n: 5 }, { signature: "memory" })).output.data;
  clearInterval(timer);
  model.close();
  const closed = await nameOf(model.run({ n: 5 }, { signature: "memory" }));
  return { ...found, after, closed, ticks };
}

/** What a model downloads the first and the second time: bytes, and bytes of them that were kept. */
async function cached(url) {
  const once = async () => {
    const files = {};
    const model = await load(url, { onProgress: (progress) => (files[progress.url] = progress) });
    model.close();
    const sum = (key) => Object.values(files).reduce((all, file) => all + file[key], 0);
    return { loaded: sum("loaded"), cached: sum("cached"), total: sum("total") };
  };
  return [await once(), await once()];
}

Object.assign(globalThis, { runCase, hostile, cached });
