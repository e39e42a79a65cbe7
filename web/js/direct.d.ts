import type { Bounds, Input, Measured, RunOptions, Signature } from "./index.js";

/** Starts the module of WebAssembly: from its URL or bytes, or from the file beside this one. */
export function start(source?: string | URL | BufferSource): Promise<unknown>;

/** A model in this very thread, which calls block: for workers and for Node. */
export class DirectModel {
  readonly signatures: Signature[];
  /** Bytes that its variables and calls hold. */
  readonly memoryInUse?: number;
  /** The signature of this name; the default, or the first, if left out. */
  signature(name?: string): Signature;
  run(inputs: Record<string, Input>, options?: RunOptions & { steps?: boolean }): Measured;
  free(): void;
}

/** Loads a model from its files: paths from its folder, and contents. */
export function loadFiles(
  files: Record<string, Uint8Array>,
  options?: { tags?: string[]; bounds?: Bounds },
): Promise<DirectModel>;

/** The paths of a model's other files, as far as those that are there tell. */
export function otherFiles(files: Record<string, Uint8Array>): Promise<string[]>;
