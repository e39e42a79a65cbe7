// Models here and by TensorFlow.js, in the same page of headless Chromium. Arguments: the package's folder, the driver's,
// Chromium, the folder that npm has installed `@tensorflow/tfjs`, `tfjs-backend-webgpu` and `tfjs-backend-wasm` in, the number of
// rounds, then for each model a SavedModel's folder and the folder of its conversion by `tensorflowjs_converter`.

import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CHROMIUM_FLAGS } from "../check/chromium.mjs";
import { serve } from "../check/server.mjs";

const [folder, driver, executablePath, tfjs, rounds, ...models] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(resolve(driver, "node_modules/playwright-core/index.mjs")));
const saved = models.filter((_, index) => index % 2 === 0);
const named = Object.fromEntries(models.map((path, index) => [`${index % 2 ? "converted" : "saved"}-${index >> 1}`, path]));
const server = await serve({ "": folder, tfjs: resolve(tfjs, "node_modules/@tensorflow"), ...named });
const browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
try {
  for (const [index, path] of saved.entries()) {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.log(`the page: ${error}`));
    await page.goto(`${server.url}bench/page.html`);
    await page.waitForFunction(() => globalThis.compare);
    const places = { saved: `${server.url}saved-${index}/`, converted: `${server.url}converted-${index}/model.json` };
    const rows = await page.evaluate((each) => compare(each), { ...places, rounds: Number(rounds) });
    for (const { name, median, least, difference } of rows) {
      const columns = [basename(path).padEnd(16), name.padEnd(22), `median ${median.toFixed(2)} ms`, `least ${least.toFixed(2)} ms`];
      console.log(`${columns.join("  ")}  differs by ${difference.toExponential(1)}`);
    }
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
