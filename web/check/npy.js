// Arrays in the format of `.npy` files.

const KINDS = {
  "<f4": ["float32", Float32Array], "<f8": ["float64", Float64Array], "<f2": ["float16", Uint16Array],
  "|i1": ["int8", Int8Array], "<i2": ["int16", Int16Array], "<i4": ["int32", Int32Array],
  "<i8": ["int64", BigInt64Array], "|u1": ["uint8", Uint8Array], "<u2": ["uint16", Uint16Array],
  "<u4": ["uint32", Uint32Array], "<u8": ["uint64", BigUint64Array], "|b1": ["bool", Uint8Array],
  "<c8": ["complex64", Float32Array], "<c16": ["complex128", Float64Array],
};

/** The array in a file, as a tensor. */
export function parseNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [start, length] = bytes[6] === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)];
  const header = new TextDecoder().decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([^']+)'/.exec(header)[1];
  if (/'fortran_order':\s*True/.test(header)) throw new Error("an array in the order of Fortran");
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(",").map((size) => size.trim()).filter(Boolean).map(Number);
  if (!KINDS[descr]) throw new Error(`arrays of ${descr} are not read`);
  const [dtype, Class] = KINDS[descr];
  return { dtype, shape, data: new Class(bytes.slice(start + length).buffer) };
}
