// Recorded calls of signatures, and whether a model gives the recorded answers. Runs in Node and in pages;
// `read(path)` gives the bytes of a file of a case.

import { parseNpy } from "./npy.js";

const decode64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** A recorded value as a tensor, or as what `run` makes a tensor of. */
async function valueOf(recorded, read) {
  if ("npy" in recorded) return { ...parseNpy(await read(recorded.npy)), dtype: recorded.dtype };
  if (recorded.dtype === "string" && recorded.values) {
    return { dtype: "string", shape: recorded.shape, data: recorded.values.map(decode64) };
  }
  if ("py" in recorded) return recorded.py;
  throw new Error(`a value of this kind is not read: ${JSON.stringify(recorded).slice(0, 80)}`);
}

/** Whether two numbers are as near as the case says. */
function isNear(found, expected, { rtol, atol }) {
  if (found === expected || (Number.isNaN(found) && Number.isNaN(expected))) return true;
  return Number.isFinite(expected) && Math.abs(found - expected) <= atol + rtol * Math.abs(expected);
}

/** The value of a half-precision float from its bits. */
function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

function brain(bits) {
  return new Float32Array(new Uint32Array([bits << 16]).buffer)[0];
}

const FLOATS = {
  float32: Number, float64: Number, complex64: Number, complex128: Number, float16: half, bfloat16: brain,
};

/** Why a tensor is not the recorded one; `null` if it is. */
function difference(found, expected, tolerance) {
  if (!found) return "there is no such output";
  if (found.dtype !== expected.dtype) return `${found.dtype} instead of ${expected.dtype}`;
  if (found.shape.join() !== expected.shape.join()) return `shape [${found.shape}] instead of [${expected.shape}]`;
  if (found.data.length !== expected.data.length) return `${found.data.length} elements instead of ${expected.data.length}`;
  const float = FLOATS[found.dtype];
  for (let index = 0; index < found.data.length; index++) {
    const [own, other] = [found.data[index], expected.data[index]];
    const same = found.dtype === "string"
      ? own.length === other.length && own.every((byte, at) => byte === other[at])
      : float ? isNear(float(own), float(other), tolerance) : own === other;
    if (!same) return `${own} instead of ${other} at ${index}`;
  }
  return null;
}

/** Values by name; sparse tensors are three values. */
function parted(values) {
  return Object.entries(values ?? {}).flatMap(([name, value]) => {
    const parts = Object.entries(value.sparse ?? {});
    return value.sparse ? parts.map(([part, inner]) => [`${name}_${part}`, inner]) : [[name, value]];
  });
}

async function checkCall(model, call, read) {
  const inputs = {};
  for (const [name, value] of parted(call.kwargs)) inputs[name] = await valueOf(value, read);
  let outputs;
  try {
    outputs = await model(call.path, inputs);
  } catch (error) {
    return call.expect?.error ? null : String(error);
  }
  if (call.expect?.error) return "a result instead of an error";
  const tolerance = { rtol: call.rtol ?? 1e-5, atol: call.atol ?? 1e-5 };
  for (const [name, value] of parted(call.expect?.dict)) {
    if (value.spec) continue;
    const why = difference(outputs[name], await valueOf(value, read), tolerance);
    if (why) return `${name}: ${why}`;
  }
  return null;
}

/** The calls of a case that this compares: those of signatures, in order. */
export function callsOf({ kind, calls }) {
  // State goes on from call to call: a case with other calls before is left to the native checks.
  const first = calls?.findIndex((call) => call.kind !== "signature") ?? 0;
  return kind === "saved_model" ? calls.slice(0, first < 0 ? calls.length : first) : [];
}

/** The files of a case's model that a loader takes. */
export function modelFiles(list) {
  return list.filter((path) => path.startsWith("model/")).map((path) => path.slice("model/".length));
}

/**
 * Makes the calls of a case on a model that `load(files, options)` loads; gives why the first fails that
 * does, or `null`. `run(model, signature, inputs)` gives outputs by name.
 */
export async function checkCase(description, read, { load, run, close }) {
  let model;
  try {
    model = await load(description.tags);
    for (const [number, call] of callsOf(description).entries()) {
      const why = await checkCall((path, inputs) => run(model, path, inputs), call, read);
      if (why) return `call ${number} ${call.path}: ${why}`;
    }
    return null;
  } catch (error) {
    // A model that cannot be loaded fails every call.
    const mustFail = !model && callsOf(description).every((call) => call.expect?.error);
    return mustFail ? null : String(error);
  } finally {
    if (model) close(model);
  }
}
