// The cases in Node: the same module as in a browser, without its worker. Arguments: the package's folder,
// then folders of cases.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkCase } from "./cases.js";
import { casesIn, filesIn } from "./folders.mjs";

const [folder, ...roots] = process.argv.slice(2);
const { start, loadFiles } = await import(pathToFileURL(resolve(folder, "direct.js")));
await start({ source: readFileSync(join(folder, "ferroflow_web_bg.wasm")) });

console.log = () => {};
let [passed, failed] = [0, 0];
const begun = performance.now();
for (const { name, folder, description } of casesIn(roots)) {
  const read = async (path) => new Uint8Array(readFileSync(join(folder, path)));
  const load = (tags) => {
    const model = join(folder, "model");
    const files = Object.fromEntries(filesIn(model).map((path) => [path, new Uint8Array(readFileSync(join(model, path)))]));
    return loadFiles(files, { tags });
  };
  const run = async (model, signature, inputs) => (await model.run(inputs, { signature })).outputs;
  const why = await checkCase(description, read, { load, run, close: (model) => model.free() });
  if (why) process.stdout.write(`${name}: ${why}\n`);
  why ? failed++ : passed++;
}
const seconds = ((performance.now() - begun) / 1e3).toFixed(1);
process.stdout.write(`web, in Node: ${passed} passed, ${failed} failed, of ${passed + failed} (${seconds} s)\n`);
process.exitCode = failed || passed === 0 ? 1 : 0;
