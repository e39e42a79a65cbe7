// Tensors of JavaScript: `{dtype, shape, data}`, where `data` is a typed array, or an array of strings.

import { failure } from "./failure.js";

/** The typed array of each dtype of fixed size. 16-bit floats are their bits, complex numbers pairs. */
const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array, complex64: Float32Array, complex128: Float64Array,
  qint8: Int8Array, quint8: Uint8Array, qint16: Int16Array, quint16: Uint16Array, qint32: Int32Array,
};

/** The dtype of a typed array that nothing else tells of. */
const DTYPES = new Map([
  [Float32Array, "float32"], [Float64Array, "float64"], [Int8Array, "int8"], [Int16Array, "int16"],
  [Int32Array, "int32"], [BigInt64Array, "int64"], [Uint8Array, "uint8"], [Uint8ClampedArray, "uint8"],
  [Uint16Array, "uint16"], [Uint32Array, "uint32"], [BigUint64Array, "uint64"],
]);

const PAIRS = new Set(["complex64", "complex128"]);
const BITS = new Set(["float16", "bfloat16"]);

const wrong = (message) => failure("InvalidArgumentError", message);

/** The typed array for elements of a dtype. */
export function arrayOf(dtype) {
  const found = ARRAYS[dtype];
  if (!found) throw wrong(`elements of ${dtype} do not go through JavaScript`);
  return found;
}

const count = (shape) => shape.reduce((product, size) => product * size, 1);

/** Whether data of this class are elements of the dtype. */
function fits(data, dtype) {
  const own = DTYPES.get(data.constructor);
  if (BITS.has(dtype)) return own === "uint16";
  return own !== undefined && own === DTYPES.get(ARRAYS[dtype]);
}

/** The shape of a flat list for an input: what is declared, with at most one size left to find out. */
function shapeFor(n, declared) {
  if (!declared) return [n];
  const unknown = declared.filter((size) => size === null).length;
  const known = count(declared.filter((size) => size !== null));
  if (unknown === 1 && known > 0 && n % known === 0) {
    return declared.map((size) => size ?? n / known);
  }
  if (unknown === 0) return declared;
  if (declared.length === 1) return [n];
  throw wrong(`${n} elements for the shape [${declared.map((s) => s ?? "?")}]: give {data, shape}`);
}

/** The sizes of nested arrays, and all elements in a row. */
function flattened(value) {
  if (!Array.isArray(value)) return { shape: [], flat: [value] };
  const parts = value.map(flattened);
  const inner = parts[0]?.shape ?? [];
  if (parts.some(({ shape }) => shape.join() !== inner.join())) {
    throw wrong("the rows of an array have different lengths");
  }
  return { shape: [value.length, ...inner], flat: parts.flatMap(({ flat }) => flat) };
}

/** Numbers, booleans or bigints as elements of a dtype. */
function elements(flat, dtype) {
  const Class = arrayOf(dtype);
  if (BITS.has(dtype)) throw wrong(`give ${dtype} as a Uint16Array of its bits`);
  if (Class === BigInt64Array || Class === BigUint64Array) return Class.from(flat, BigInt);
  return Class.from(flat, Number);
}

/**
 * A value for an input as a tensor: a tensor, a typed array, a number, a string, a boolean, or nested
 * arrays of those. `spec` is the input as the signature declares it.
 */
export function toTensor(value, spec) {
  if (ArrayBuffer.isView(value)) {
    const dtype = spec && fits(value, spec.dtype) ? spec.dtype : DTYPES.get(value.constructor);
    if (!dtype) throw wrong(`a ${value.constructor.name} is no tensor`);
    const n = PAIRS.has(dtype) ? value.length / 2 : value.length;
    return { dtype, shape: shapeFor(n, spec?.shape), data: value };
  }
  if (value !== null && typeof value === "object" && "data" in value) {
    const { data } = value;
    const dtype = value.dtype ?? toTensor(data, spec).dtype;
    const n = PAIRS.has(dtype) ? data.length / 2 : data.length;
    return { dtype, shape: value.shape ?? shapeFor(n, spec?.shape), data };
  }
  const { shape, flat } = flattened(value);
  const [first] = flat;
  if (typeof first === "string" || first instanceof Uint8Array) {
    return { dtype: "string", shape, data: flat };
  }
  const dtype = spec?.dtype ?? (typeof first === "bigint" ? "int64" : typeof first === "boolean" ? "bool" : "float32");
  return { dtype, shape, data: elements(flat, dtype) };
}

const encoder = new TextEncoder();

/** A tensor as the module of WebAssembly takes it. */
export function toWasm(wasm, { dtype, shape, data }) {
  if (dtype === "string") {
    const bytes = Array.from(data, (text) => (typeof text === "string" ? encoder.encode(text) : text));
    return wasm.WebTensor.strings(Float64Array.from(shape), bytes);
  }
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return wasm.WebTensor.plain(dtype, Float64Array.from(shape), bytes);
}

/** A tensor that came out of it, whose memory there is given back. Strings are byte strings. */
export function fromWasm(tensor) {
  const { dtype } = tensor;
  const shape = Array.from(tensor.shape);
  try {
    if (dtype === "string") return { dtype, shape, data: tensor.texts() };
    const bytes = tensor.bytes();
    return { dtype, shape, data: new (arrayOf(dtype))(bytes.buffer, bytes.byteOffset, bytes.byteLength / arrayOf(dtype).BYTES_PER_ELEMENT) };
  } finally {
    tensor.free();
  }
}

/** The strings of a tensor as text. */
export function texts(tensor) {
  const decoder = new TextDecoder();
  return Array.from(tensor.data, (bytes) => decoder.decode(bytes));
}
