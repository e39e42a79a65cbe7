/** Elements of a tensor as they lie in memory; 16-bit floats as their bits, complex numbers as pairs. */
export type TypedArray =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array | BigUint64Array;

export type DType =
  | "float16" | "bfloat16" | "float32" | "float64" | "complex64" | "complex128" | "bool" | "string"
  | "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64"
  | "qint8" | "quint8" | "qint16" | "quint16" | "qint32";

/** A tensor. Strings are byte strings: `texts` gives them as text. */
export interface Tensor {
  dtype: DType;
  shape: number[];
  data: TypedArray | Uint8Array[];
}

/** An element, or nested arrays of elements. */
export type Nested = number | bigint | boolean | string | Uint8Array | Nested[];

/** What `run` takes for an input. Where a shape or dtype is left out, the signature's is taken. */
export type Input = TypedArray | Nested | { data: TypedArray | (string | Uint8Array)[]; shape?: number[]; dtype?: DType };

/** An input or output of a signature. A shape is `null` if its rank is not known, and so is a size. */
export interface Spec {
  name: string;
  dtype: DType | null;
  shape: (number | null)[] | null;
}

export interface Signature {
  name: string;
  inputs: Spec[];
  outputs: Spec[];
}

/** Bounds of a call. A call that goes beyond one fails with `DeadlineExceededError` or `ResourceExhaustedError`. */
export interface Bounds {
  /** Milliseconds; a minute, if left out. */
  deadline?: number;
  /** Bytes of memory; 1 GiB, if left out. */
  memory?: number;
  /** Rounds of all loops together. */
  rounds?: number;
  /** Bytes of printed text; 1 MiB, if left out. */
  printed?: number;
}

/** Bytes of a file that have come. `cached` of them were kept from an earlier time. */
export interface Progress {
  url: string;
  loaded: number;
  total: number | null;
  cached: number;
}

/**
 * What a model computes on. `"webgpu"` needs a browser with WebGPU that suspends calls (JavaScript Promise Integration), and takes an
 * adapter in software too; `"auto"` takes WebGPU where a graphics processor answers, and the CPU elsewhere.
 */
export type Device = "auto" | "cpu" | "webgpu";

export interface LoadOptions {
  /** The tags of the MetaGraph; may be left out where there is one only. */
  tags?: string[];
  /** `"auto"`, if left out. Loading fails with `NotFoundError` where there is no such device. */
  device?: Device;
  /** Bounds of loading, and of each call that gives none of its own. `memory` is for all calls together. */
  bounds?: Bounds;
  onProgress?(progress: Progress): void;
  /** Whether downloads are kept in the page's own files; they are, unless this is `false`. */
  cache?: boolean;
}

export interface RunOptions extends Bounds {
  /** The signature; `serving_default` or the first, if left out. */
  signature?: string;
}

/**
 * An op that ran: times in milliseconds, `start` from the beginning of the run. WebGPU computes later: there they are of handing the
 * op over, and whoever reads its results waits.
 */
export interface Step {
  node: string;
  op: string;
  /** `/device:CPU:0` or `/device:WGPU:0`. */
  device: string;
  start: number;
  elapsed: number;
}

export interface Measured {
  outputs: Record<string, Tensor>;
  /** Milliseconds of the call. */
  elapsed: number;
  steps?: Step[];
}

/** A model in a worker of its own. Errors have TensorFlow's names, such as `InvalidArgumentError`. */
export class Model {
  /** What it computes on. */
  readonly device: "cpu" | "webgpu";
  readonly signatures: Signature[];
  /** Bytes that its variables held when it was loaded. */
  readonly memoryInUse?: number;
  /** Calls a signature; gives the outputs by name. */
  run(inputs: Record<string, Input>, options?: RunOptions): Promise<Record<string, Tensor>>;
  /** Calls a signature and notes what each op took. */
  measure(inputs: Record<string, Input>, options?: RunOptions): Promise<Measured>;
  /** Ends the worker; calls in progress fail. */
  close(): void;
}

/** Loads a SavedModel: from the URL of its folder, from a `FileList` or `File`s, or from `{path: bytes}`. */
export function load(
  source: string | URL | Iterable<File> | Record<string, Uint8Array>,
  options?: LoadOptions,
): Promise<Model>;

/** The files in what was dropped on a page, folders opened. */
export function fromDrop(transfer: DataTransfer): Promise<File[]>;

/** The strings of a tensor as text. */
export function texts(tensor: Tensor): string[];
