// Cases on the disk.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { callsOf } from "./cases.js";

/** The paths of the files in a folder, from there. */
export function filesIn(folder) {
  const walk = (path) => readdirSync(path).flatMap((name) => {
    const inner = join(path, name);
    return statSync(inner).isDirectory() ? walk(inner) : [relative(folder, inner)];
  });
  return walk(folder);
}

/** The cases with calls of signatures in these folders: `{name, folder, description}`. */
export function casesIn(roots) {
  const all = roots.filter(existsSync).flatMap((root) => readdirSync(root).map((name) => ({ name, folder: join(root, name) })));
  const found = new Map();
  for (const { name, folder } of all) {
    const file = join(folder, "case.json");
    if (found.has(name) || !existsSync(file)) continue;
    const description = JSON.parse(readFileSync(file, "utf8"));
    if (callsOf(description).length > 0) found.set(name, { name, folder, description });
  }
  return [...found.values()];
}
