// Where the files of a model come from: a URL, or files that the page has.

import { download } from "./download.js";
import { failure } from "./failure.js";

const MODEL = "saved_model.pb";
const INDEX = "variables/variables.index";

/** Whether a path that a model names stays in its folder. */
const isInside = (path) => path.split("/").every((part) => part !== "" && part !== "." && part !== "..");

const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

/**
 * The files of the SavedModel at a URL. `others` tells which files there are beside its first ones.
 */
export async function fromUrl(url, others, options) {
  const base = new URL(url.endsWith("/") ? url : `${url}/`, globalThis.location?.href);
  const get = (path) => download(new URL(encoded(path), base).href, options);
  const files = { [MODEL]: await get(MODEL) };
  // A model without variables has no checkpoint. Of a file that is missing, whoever needs it tells.
  const add = async (path) => {
    try {
      files[path] = await get(path);
    } catch (error) {
      if (error.name !== "NotFoundError") throw error;
    }
  };
  await add(INDEX);
  const rest = await others(files);
  await Promise.all(rest.filter(isInside).map(add));
  return files;
}

/** Where the model's folder begins in paths such as those of a folder that was dropped. */
function prefixOf(paths) {
  const models = paths.filter((path) => /(^|\/)saved_model\.(pb|pbtxt)$/.test(path));
  models.sort((a, b) => a.length - b.length);
  if (models.length === 0) {
    throw failure("NotFoundError", "there is no saved_model.pb among these files");
  }
  return models[0].slice(0, models[0].lastIndexOf("/") + 1);
}

/** The files of a model by their paths from its folder: of a `FileList`, of `File`s, or of `{path: bytes}`. */
export async function fromFiles(files) {
  const isList = Symbol.iterator in files;
  const named = isList
    ? Array.from(files, (file) => [file.path || file.webkitRelativePath || file.name, file])
    : Object.entries(files);
  const prefix = prefixOf(named.map(([path]) => path));
  const inside = named.filter(([path]) => path.startsWith(prefix));
  const bytes = async (content) =>
    content instanceof Uint8Array ? content : new Uint8Array(await content.arrayBuffer());
  const pairs = inside.map(async ([path, content]) => [path.slice(prefix.length), await bytes(content)]);
  return Object.fromEntries(await Promise.all(pairs));
}

/** The files in what was dropped on a page, with their paths. */
export async function fromDrop(transfer) {
  const found = [];
  const walk = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      file.path = entry.fullPath.replace(/^\//, "");
      found.push(file);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (entries.length === 0) return;
      await Promise.all(entries.map(walk));
    }
  };
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry()).filter(Boolean);
  await Promise.all(entries.map(walk));
  return found;
}
