import type { Bounds, Device, Input, Measured, RunOptions, Signature } from "./index.js";

/** Starts the module of WebAssembly for a device: from its URL or bytes, or from the file beside this one. */
export function start(options?: { device?: "cpu" | "webgpu"; source?: string | URL | BufferSource }): Promise<unknown>;

/** A model in this very thread, which calls on the CPU block: for workers and for Node. */
export class DirectModel {
  /** What it computes on. */
  readonly device: "cpu" | "webgpu";
  readonly signatures: Signature[];
  /** Bytes that its variables and calls hold. */
  readonly memoryInUse?: number;
  /** The signature of this name; the default, or the first, if left out. */
  signature(name?: string): Signature;
  run(inputs: Record<string, Input>, options?: RunOptions & { steps?: boolean }): Promise<Measured>;
  free(): Promise<void>;
}

/** Loads a model from its files: paths from its folder, and contents. */
export function loadFiles(
  files: Record<string, Uint8Array>,
  options?: { tags?: string[]; device?: Device; bounds?: Bounds },
): Promise<DirectModel>;

/** The paths of a model's other files, as far as those that are there tell. */
export function otherFiles(files: Record<string, Uint8Array>, options?: { device?: Device }): Promise<string[]>;
