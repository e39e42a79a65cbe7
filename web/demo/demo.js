// The page: a model is dropped or chosen, its signatures are shown, and it is called.

import { fromDrop, load, texts } from "../index.js";
import { Drawing } from "./drawing.js";

const $ = (id) => document.getElementById(id);
let model;

function say(text, isFailure = false) {
  $("status").textContent = text;
  $("status").classList.toggle("failed", isFailure);
}

const shown = (shape) => (shape ? `[${shape.map((size) => size ?? "?").join(", ")}]` : "of any rank");

function showSignatures() {
  const row = (cells, tag = "td") => {
    const line = document.createElement("tr");
    for (const cell of cells) line.appendChild(document.createElement(tag)).textContent = cell;
    return line;
  };
  const rows = model.signatures.flatMap(({ name, inputs, outputs }) => [
    ...inputs.map((spec, index) => [index ? "" : name, "takes", spec.name, spec.dtype, shown(spec.shape)]),
    ...outputs.map((spec) => ["", "gives", spec.name, spec.dtype ?? "?", shown(spec.shape)]),
  ]);
  $("signatures").replaceChildren(row(["signature", "", "name", "dtype", "shape"], "th"), ...rows.map((cells) => row(cells)));
}

/** The input of pixels that a digit is drawn for, if a signature has one. */
function digitInput() {
  for (const signature of model.signatures) {
    const [input, ...others] = signature.inputs;
    if (others.length === 0 && input?.dtype === "float32" && input.shape?.slice(1).join() === "8,8") {
      return { signature: signature.name, name: input.name };
    }
  }
  return null;
}

/** Bars with their lengths by `value`. */
function bars(place, rows) {
  const most = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  place.replaceChildren(...rows.map(({ name, value, text }) => {
    const bar = Object.assign(document.createElement("div"), { className: "bar" });
    const label = Object.assign(document.createElement("span"), { textContent: name, title: name });
    const length = document.createElement("i");
    length.style.width = `${(100 * value) / most}%`;
    bar.append(label, length, Object.assign(document.createElement("b"), { textContent: text }));
    return bar;
  }));
}

function showSteps({ elapsed, steps = [] }) {
  $("steps").hidden = false;
  $("times").textContent = `${elapsed.toFixed(2)} ms, ${steps.length} steps`;
  const slowest = [...steps].sort((a, b) => b.elapsed - a.elapsed).slice(0, 24);
  const kept = steps.filter((step) => slowest.includes(step));
  bars($("chart"), kept.map(({ node, op, elapsed }) => ({ name: `${op} ${node}`, value: elapsed, text: `${elapsed.toFixed(3)} ms` })));
}

async function use(source, name) {
  model?.close();
  for (const id of ["digit", "call", "steps"]) $(id).hidden = true;
  const progress = $("progress");
  const files = new Map();
  const onProgress = ({ url, loaded, total }) => {
    files.set(url, { loaded, total: total ?? loaded });
    const sum = (key) => [...files.values()].reduce((all, file) => all + file[key], 0);
    progress.hidden = false;
    progress.value = sum("loaded") / sum("total");
  };
  say(`Loading ${name} …`);
  const begun = performance.now();
  try {
    model = await load(source, { device: $("device").value, onProgress });
  } catch (error) {
    return say(`${error.name}: ${error.message}`, true);
  } finally {
    progress.hidden = true;
  }
  say(`${name}: loaded in ${Math.round(performance.now() - begun)} ms, ${(model.memoryInUse / 1024).toFixed(0)} KiB, on ${model.device === "webgpu" ? "WebGPU" : "the CPU"}.`);
  showSignatures();
  $("digit").hidden = !digitInput();
  $("call").hidden = false;
  $("signature").replaceChildren(...model.signatures.map(({ name }) => new Option(name)));
  suggest();
}

/** An example of inputs for the chosen signature. */
function suggest() {
  const signature = model.signatures.find(({ name }) => name === $("signature").value);
  const zeros = (sizes, value) => sizes.reduceRight((inner, size) => Array(size ?? 1).fill(inner), value);
  const values = { string: "text", bool: false };
  const example = ({ shape, dtype }) => {
    const sizes = shape ?? [];
    const n = sizes.reduce((product, size) => product * (size ?? 1), 1);
    return n > 64 ? null : zeros(sizes, values[dtype] ?? 0);
  };
  $("inputs").value = JSON.stringify(Object.fromEntries((signature?.inputs ?? []).map((spec) => [spec.name, example(spec)])));
}

function described({ dtype, shape, data }, tensor) {
  const elements = dtype === "string" ? texts(tensor) : Array.from(data.slice(0, 64), String);
  return `${dtype}${shown(shape)}\n  ${elements.slice(0, 64).join(", ")}${data.length > 64 ? ", …" : ""}`;
}

async function call(inputs, options) {
  try {
    const measured = await model.measure(inputs, options);
    showSteps(measured);
    return measured.outputs;
  } catch (error) {
    say(`${error.name}: ${error.message}`, true);
    return null;
  }
}

async function readDigit() {
  const { signature, name } = digitInput();
  const pixels = drawing.pixels();
  const outputs = await call({ [name]: { data: pixels, shape: [1, 8, 8] } }, { signature });
  if (!outputs) return;
  const [{ data }] = Object.values(outputs);
  const best = data.indexOf(Math.max(...data));
  $("answer").textContent = `This is a ${best}.`;
  bars($("probabilities"), Array.from(data, (value, digit) => ({ name: String(digit), value, text: `${(100 * value).toFixed(1)} %` })));
}

async function runInputs() {
  const { value: name } = $("signature");
  try {
    const inputs = JSON.parse($("inputs").value);
    const outputs = await call(inputs, { signature: name });
    if (outputs) $("outputs").textContent = Object.entries(outputs).map(([key, tensor]) => `${key}: ${described(tensor, tensor)}`).join("\n");
  } catch (error) {
    say(`The inputs are not JSON: ${error.message}`, true);
  }
}

/** Runs a picture through an input of `[batch, height, width, channels]`. */
async function runPicture() {
  const [file] = $("picture").files;
  const signature = model.signatures.find(({ name }) => name === $("signature").value);
  const input = signature.inputs.find(({ shape }) => shape?.length === 4);
  if (!input) return say("no input of this signature takes pictures", true);
  const [, height, width, channels] = input.shape;
  const picture = await createImageBitmap(file);
  const canvas = new OffscreenCanvas(width ?? picture.width, height ?? picture.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const n = channels ?? 3;
  const scale = input.dtype === "uint8" ? 1 : 1 / 255;
  const Class = input.dtype === "uint8" ? Uint8Array : Float32Array;
  const pixels = new Class(canvas.width * canvas.height * n);
  for (let at = 0; at < pixels.length; at++) {
    const pixel = 4 * Math.floor(at / n);
    pixels[at] = scale * (n === 1 ? (data[pixel] + data[pixel + 1] + data[pixel + 2]) / 3 : data[pixel + (at % n)]);
  }
  const outputs = await call({ [input.name]: { data: pixels, shape: [1, canvas.height, canvas.width, n] } }, { signature: signature.name });
  if (outputs) $("outputs").textContent = Object.entries(outputs).map(([key, tensor]) => `${key}: ${described(tensor, tensor)}`).join("\n");
}

const drawing = new Drawing($("canvas"), $("seen"));
$("bundled").onclick = () => use(new URL("digits/", import.meta.url), "digits");
$("folder").onchange = ({ target }) => use(target.files, target.files[0]?.webkitRelativePath.split("/")[0]);
$("drop").ondragover = (event) => {
  event.preventDefault();
  $("drop").classList.add("over");
};
$("drop").ondragleave = () => $("drop").classList.remove("over");
$("drop").ondrop = async (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  use(await fromDrop(event.dataTransfer), "the dropped folder");
};
$("read").onclick = readDigit;
$("clear").onclick = () => {
  drawing.clear();
  $("answer").textContent = "";
  $("probabilities").replaceChildren();
};
$("signature").onchange = suggest;
$("run").onclick = runInputs;
$("picture").onchange = runPicture;
