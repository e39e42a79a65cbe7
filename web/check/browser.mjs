// The cases, bounds, downloads and the demo in headless Chromium. Arguments: the package's folder, the
// driver's, Chromium, where the screenshot goes, then folders of cases.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { callsOf } from "./cases.js";
import { CHROMIUM_FLAGS } from "./chromium.mjs";
import { casesIn, filesIn } from "./folders.mjs";
import { serve } from "./server.mjs";

const [folder, driver, executablePath, screenshot, ...roots] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(resolve(driver, "node_modules/playwright-core/index.mjs")));
const cases = casesIn(roots);
const named = Object.fromEntries(cases.map(({ name, folder }) => [`case-${name}`, folder]));
const server = await serve({ "": folder, ...named });
const browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
const failures = [];
const expect = (what, holds, found) => {
  if (!holds) failures.push(`${what}: ${JSON.stringify(found)}`);
};

async function opened(path) {
  const page = await browser.newPage({ viewport: { width: 1120, height: 860 } });
  page.on("pageerror", (error) => failures.push(`the page: ${error}`));
  await page.goto(server.url + path);
  return page;
}

async function checkCases(device) {
  const page = await opened("check/page.html");
  let failed = 0;
  let onDevice = 0;
  for (const { name, folder: of, description } of cases) {
    const files = filesIn(`${of}/model`);
    const calls = { ...description, calls: callsOf(description) };
    const { why, ran } = await page.evaluate((each) => runCase(each), { url: `${server.url}case-${name}/`, description: calls, files, device });
    if (why) console.log(`${name} (${device}): ${why}`);
    failed += why ? 1 : 0;
    onDevice += device === "webgpu" && ran["/device:WGPU:0"] ? 1 : 0;
  }
  await page.close();
  const also = device === "webgpu" ? `; ${onDevice} have steps on WebGPU` : "";
  console.log(`${device}: ${cases.length - failed} passed, ${failed} failed, of ${cases.length}${also}`);
  expect("models compute on WebGPU", device === "cpu" || onDevice >= 25, onDevice);
  return failed;
}

async function checkBounds(device) {
  const page = await opened("check/page.html");
  const found = await page.evaluate(([url, device]) => hostile(url, device), [`${server.url}check/hostile/`, device]);
  await page.close();
  console.log(`bounds (${device}): ${JSON.stringify(found)}`);
  const [late, full] = ["DeadlineExceededError", "ResourceExhaustedError"];
  expect("an endless loop ends", found.endless.error === late && found.endless.milliseconds < 1500, found.endless);
  expect("rounds are counted", found.rounds.error !== "no error", found.rounds);
  expect("a long kernel ends", found.product.error === late && found.product.milliseconds < 2500, found.product);
  expect("a call has no more memory", found.memory.error === full, found.memory);
  expect("a model has no more memory", found.whole.error === full, found.whole);
  expect("the model goes on", found.after === 5 && found.closed === "UnavailableError", found);
  expect("the page goes on", found.ticks > 50, found.ticks);
}

async function checkDownloads() {
  const page = await opened("check/page.html");
  const [first, second] = await page.evaluate((url) => cached(url), `${server.url}demo/digits/`);
  await page.close();
  console.log(`downloads: ${JSON.stringify({ first, second })}`);
  expect("a first download brings all", first.loaded === first.total && first.cached === 0, first);
  expect("a second one brings nothing", second.cached === second.total && second.total === first.total, second);
}

/** Strokes of digits, in parts of the canvas. */
const STROKES = {
  0: [[[0.5, 0.1], [0.3, 0.25], [0.25, 0.5], [0.3, 0.75], [0.5, 0.9], [0.7, 0.75], [0.75, 0.5], [0.7, 0.25], [0.5, 0.1]]],
  1: [[[0.35, 0.3], [0.52, 0.12], [0.52, 0.9]]],
  3: [[[0.3, 0.18], [0.5, 0.1], [0.7, 0.2], [0.68, 0.38], [0.48, 0.48], [0.7, 0.6], [0.72, 0.78], [0.52, 0.9], [0.28, 0.82]]],
  7: [[[0.27, 0.12], [0.75, 0.12], [0.6, 0.45], [0.45, 0.9]]],
};

async function draw(page, strokes) {
  const { x, y, width, height } = await page.locator("#canvas").boundingBox();
  for (const [first, ...rest] of strokes) {
    await page.mouse.move(x + first[0] * width, y + first[1] * height);
    await page.mouse.down();
    for (const [h, v] of rest) await page.mouse.move(x + h * width, y + v * height, { steps: 6 });
    await page.mouse.up();
  }
}

async function checkDemo(device) {
  const page = await opened("demo/index.html");
  await page.selectOption("#device", device);
  await page.click("#bundled");
  await page.waitForSelector("#digit:not([hidden])", { timeout: 30_000 });
  for (const [digit, strokes] of Object.entries(STROKES)) {
    await page.click("#clear");
    await draw(page, strokes);
    await page.click("#read");
    await page.waitForFunction(() => document.getElementById("answer").textContent !== "", null, { timeout: 10_000 });
    const answer = await page.textContent("#answer");
    expect(`a drawn ${digit} is read`, answer === `This is a ${digit}.`, answer);
    if (digit === "3" && device === "webgpu") await page.screenshot({ path: screenshot, fullPage: true });
  }
  console.log(`demo (${device}): ${await page.textContent("#status")} ${await page.textContent("#times")}; ${screenshot}`);
  await page.close();
}

const DEVICES = ["cpu", "webgpu"];
const begun = performance.now();
const total = DEVICES.length * cases.length;
let failed = total;
try {
  failed = 0;
  for (const device of DEVICES) {
    failed += await checkCases(device);
    await checkBounds(device);
  }
  await checkDownloads();
  for (const device of DEVICES) await checkDemo(device);
} catch (error) {
  failures.push(String(error));
} finally {
  await browser.close();
  server.close();
}
failures.forEach((failure) => console.log(`failed: ${failure}`));
console.log(`web: ${total - failed} passed, ${failed} failed, of ${total} (${((performance.now() - begun) / 1e3).toFixed(1)} s)`);
process.exitCode = failed || failures.length || cases.length < 25 ? 1 : 0;
