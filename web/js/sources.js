// Where the files of a model come from: a URL, or files that the page has.

import { download } from "./download.js";

const MODEL = "saved_model.pb";
const INDEX = "variables/variables.index";

const isNotFound = (error) => error.name === "NotFoundError";

/**
 * The files of the SavedModel at a URL. `others` tells which files there are beside its first ones.
 */
export async function fromUrl(url, others, options) {
  const base = new URL(url.endsWith("/") ? url : `${url}/`, globalThis.location?.href);
  const get = (path) => download(new URL(path, base).href, options);
  const files = { [MODEL]: await get(MODEL) };
  try {
    files[INDEX] = await get(INDEX);
  } catch (error) {
    // A model without variables has no checkpoint.
    if (!isNotFound(error)) throw error;
  }
  const rest = await others(files);
  await Promise.all(rest.map(async (path) => {
    files[path] = await get(path);
  }));
  return files;
}

/** Where the model's folder begins in paths such as those of a folder that was dropped. */
function prefixOf(paths) {
  const models = paths.filter((path) => /(^|\/)saved_model\.(pb|pbtxt)$/.test(path));
  models.sort((a, b) => a.length - b.length);
  if (models.length === 0) {
    const error = new Error("there is no saved_model.pb among these files");
    error.name = "NotFoundError";
    throw error;
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
