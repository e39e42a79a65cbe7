// What the benchmark does in the page: the same model here and by TensorFlow.js, in turns.

import { load } from "../index.js";

/** Numbers between 0 and 1, the same for both sides. */
function randomInput(n) {
  let state = 1;
  return Float32Array.from({ length: n }, () => ((state = (state * 48271) % 2147483647) / 2147483647));
}

const count = (shape) => shape.reduce((all, size) => all * size, 1);

async function ours(url, device) {
  const model = await load(url, { device, cache: false });
  const [input] = model.signatures[0].inputs;
  const shape = input.shape.map((size) => size ?? 1);
  const data = randomInput(count(shape));
  const run = async () => Object.values(await model.run({ [input.name]: { data, shape, dtype: "float32" } }))[0].data;
  return { run, close: () => model.close() };
}

async function tensorFlowJs(url, backend) {
  const { tf } = globalThis;
  if (backend === "wasm") tf.wasm.setWasmPaths("/tfjs/tfjs-backend-wasm/dist/");
  const use = () => tf.setBackend(backend);
  await use();
  const model = await tf.loadGraphModel(url);
  const [input] = model.inputs;
  const shape = input.shape.map((size) => (size > 0 ? size : 1));
  const data = randomInput(count(shape));
  const run = async () => {
    await use();
    const x = tf.tensor(data, shape);
    const y = model.predict({ [input.name]: x });
    const result = await (Array.isArray(y) ? y[0] : y.dataSync ? y : Object.values(y)[0]).data();
    tf.dispose([x, y]);
    return result;
  };
  return { run, close: () => model.dispose() };
}

/** Milliseconds of a call, the median, of all sides, and the largest difference of their results from the first's. */
async function compare({ saved, converted, rounds }) {
  const sides = {
    "ferroflow cpu": await ours(saved, "cpu"),
    "TensorFlow.js wasm": await tensorFlowJs(converted, "wasm"),
    "ferroflow webgpu": await ours(saved, "webgpu"),
    "TensorFlow.js webgpu": await tensorFlowJs(converted, "webgpu"),
  };
  const times = {};
  const results = {};
  for (const [name, { run }] of Object.entries(sides)) {
    results[name] = await run();
    await run();
    times[name] = [];
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, { run }] of Object.entries(sides)) {
      const begun = performance.now();
      await run();
      times[name].push(performance.now() - begun);
    }
  }
  const [first] = Object.values(results);
  const rows = Object.entries(sides).map(([name, { close }]) => {
    close();
    const sorted = times[name].sort((a, b) => a - b);
    const difference = results[name].reduce((most, value, at) => Math.max(most, Math.abs(value - first[at])), 0);
    return { name, median: sorted[sorted.length >> 1], least: sorted[0], difference };
  });
  return rows;
}

globalThis.compare = compare;
