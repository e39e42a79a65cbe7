// The device that a model computes on: WebGPU, where the browser has it, or the CPU.

import { failure } from "./failure.js";

/** Why no model computes by WebGPU here; `null` if one can. */
async function obstacle(isSoftwareEnough) {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) return "this browser has no WebGPU here";
  // What WebGPU answers comes as promises, for which calls wait by suspending their stack.
  if (!("Suspending" in WebAssembly)) return "this browser does not suspend calls (JavaScript Promise Integration)";
  const adapter = await gpu.requestAdapter();
  if (!adapter) return "WebGPU finds no adapter";
  const isSoftware = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
  return isSoftware && !isSoftwareEnough ? "WebGPU has an adapter in software only" : null;
}

/**
 * `"webgpu"` or `"cpu"`: what is asked for, or for `"auto"` WebGPU where a graphics processor answers.
 */
export async function chosenDevice(asked = "auto") {
  if (asked === "cpu") return asked;
  if (asked !== "auto" && asked !== "webgpu") {
    throw failure("InvalidArgumentError", `a device is "auto", "cpu" or "webgpu", found ${JSON.stringify(asked)}`);
  }
  const why = await obstacle(asked === "webgpu");
  if (!why) return "webgpu";
  if (asked === "webgpu") throw failure("NotFoundError", why);
  return "cpu";
}
