// WebGPU for the module of WebAssembly: objects by numbers, errors as texts. Functions that return promises suspend
// the call that waits for them.

/** Usages of buffers, `GPUBufferUsage`: STORAGE, COPY_SRC and COPY_DST for kernels; MAP_READ and COPY_DST for copies. */
const USAGE = { bound: 0x80, kernel: 0x80 | 0x04 | 0x08, copy: 0x01 | 0x08 };

/** `GPUShaderStage.COMPUTE`. */
const COMPUTE = 4;

/** `GPUMapMode.READ`. */
const READ = 1;

let device;
let adapter;
let loss;
let defect;
let encoder;
let pass;
const objects = new Map();
let next = 1;
/** Bind groups by the numbers of a pipeline and of its buffers. Memory comes from a pool, so that calls soon find the
 * memory of earlier ones. */
const groups = new Map();
const MOST_GROUPS = 4096;
/** Buffers that go when what uses them was sent. */
let dropped = [];

function numbered(object) {
  objects.set(next, object);
  return next++;
}

/** Connects to the browser's adapter; tells whether there is one. */
export async function connect() {
  adapter = await globalThis.navigator?.gpu?.requestAdapter();
  if (!adapter) return false;
  const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = adapter.limits;
  device = await adapter.requestDevice({
    requiredFeatures: adapter.features.has("shader-f16") ? ["shader-f16"] : [],
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage },
  });
  device.lost.then(({ message, reason }) => (loss = message || reason));
  device.onuncapturederror = ({ error }) => (defect ??= error.message);
  return true;
}

export function adapterName() {
  const { description, device: name, architecture, vendor } = adapter.info ?? {};
  return description || name || architecture || vendor || "WebGPU";
}

export const isSoftware = () => adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
export const hasHalves = () => device.features.has("shader-f16");
export const mostBindings = () => device.limits.maxStorageBuffersPerShaderStage;
export const mostBytes = () => Math.min(device.limits.maxBufferSize, device.limits.maxStorageBufferBindingSize);

export const lossReason = () => loss;

/** The first defect found since the last look. */
export function takeDefect() {
  const found = defect;
  defect = undefined;
  return found;
}

/** A pipeline of a text, with so many buffers that are read and that are written. */
export async function compile(label, code, entryPoint, inputs, outputs) {
  const entries = Array.from({ length: inputs + outputs }, (_, binding) => ({
    binding,
    visibility: COMPUTE,
    buffer: { type: binding < inputs ? "read-only-storage" : "storage" },
  }));
  device.pushErrorScope("validation");
  const layout = device.createBindGroupLayout({ entries });
  const module = device.createShaderModule({ label, code });
  const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });
  const pipeline = device.createComputePipeline({ label, layout: pipelineLayout, compute: { module, entryPoint } });
  const error = await device.popErrorScope();
  if (!error) return numbered({ pipeline, layout });
  const { messages } = await module.getCompilationInfo();
  throw [error.message, ...messages.map(({ lineNum, message }) => `line ${lineNum}: ${message}`)].join("\n");
}

/** A buffer; 0 where there is no room for it. */
export async function allocate(size, isCopy) {
  device.pushErrorScope("out-of-memory");
  const buffer = device.createBuffer({ size, usage: isCopy ? USAGE.copy : USAGE.kernel });
  const error = await device.popErrorScope();
  return error ? 0 : numbered(buffer);
}

/** The same without waiting: a buffer that there is no room for is a defect. */
export function allocateSmall(size, isCopy) {
  return numbered(device.createBuffer({ size, usage: isCopy ? USAGE.copy : USAGE.kernel }));
}

function passOf() {
  encoder ??= device.createCommandEncoder();
  pass ??= encoder.beginComputePass();
  return pass;
}

function endPass() {
  pass?.end();
  pass = undefined;
}

function groupOf(program, buffers) {
  const key = `${program} ${buffers}`;
  const known = groups.get(key);
  if (known) return known;
  const { layout } = objects.get(program);
  const entries = Array.from(buffers, (number, binding) => ({ binding, resource: { buffer: objects.get(number) } }));
  const group = device.createBindGroup({ layout, entries });
  if (groups.size >= MOST_GROUPS) groups.clear();
  groups.set(key, group);
  return group;
}

/** Lets go of bind groups, which keep the memory that they bind. */
export function forgetGroups() {
  groups.clear();
}

export function record(program, buffers, width, height) {
  const recorder = passOf();
  recorder.setPipeline(objects.get(program).pipeline);
  recorder.setBindGroup(0, groupOf(program, buffers));
  recorder.dispatchWorkgroups(width, height);
}

export function recordCopy(from, to, size) {
  endPass();
  encoder ??= device.createCommandEncoder();
  encoder.copyBufferToBuffer(objects.get(from), 0, objects.get(to), 0, size);
}

export function send() {
  endPass();
  if (encoder) device.queue.submit([encoder.finish()]);
  encoder = undefined;
  dropped.forEach((buffer) => buffer.destroy());
  dropped = [];
}

export function write(buffer, bytes) {
  device.queue.writeBuffer(objects.get(buffer), 0, bytes);
}

export async function wait() {
  await device.queue.onSubmittedWorkDone();
}

/** The first bytes of a buffer, after what was sent. */
export async function read(number, bytes) {
  const buffer = objects.get(number);
  await buffer.mapAsync(READ);
  const found = new Uint8Array(buffer.getMappedRange()).slice(0, bytes);
  buffer.unmap();
  return found;
}

export function drop(number) {
  const object = objects.get(number);
  if (object.destroy) dropped.push(object);
  if (object.usage & USAGE.bound) groups.clear();
  objects.delete(number);
}
