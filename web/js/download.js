// Downloads: in ranges, with progress, kept in the page's own files (OPFS).
//
// A file is fetched in pieces by `Range`, and each piece is kept as a file of its own under the file's URL
// and version (`ETag` or `Last-Modified`). What was fetched once, in whole or in part, is not fetched again
// while the server names the same version. A server without ranges sends the whole at once.

import { failure } from "./failure.js";

const PIECE = 4 * 2 ** 20;

function failed(url, response) {
  const name = response.status === 404 ? "NotFoundError" : "UnavailableError";
  return failure(name, `${url}: ${response.status} ${response.statusText}`);
}

/** The bytes of a response, which are told of as they come. */
async function received(response, tell) {
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    tell(value.length);
  }
  return joined(parts);
}

function joined(parts) {
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A folder of pieces of one version of a file; none where the browser keeps no files. */
async function folderOf(url, version) {
  if (!version || !globalThis.navigator?.storage?.getDirectory) return null;
  const name = async (text) => {
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  try {
    const root = await navigator.storage.getDirectory();
    const own = await root.getDirectoryHandle("ferroflow", { create: true });
    const file = await own.getDirectoryHandle(await name(url), { create: true });
    const current = await name(version);
    for await (const old of file.keys()) {
      if (old !== current) await file.removeEntry(old, { recursive: true });
    }
    return await file.getDirectoryHandle(current, { create: true });
  } catch (error) {
    console.warn(`ferroflow: ${url} is not kept: ${error}`);
    return null;
  }
}

async function kept(folder, piece, length) {
  try {
    const file = await (await folder.getFileHandle(piece)).getFile();
    return file.size === length ? new Uint8Array(await file.arrayBuffer()) : null;
  } catch {
    return null;
  }
}

async function keep(folder, piece, bytes) {
  try {
    const file = await (await folder.getFileHandle(piece, { create: true })).createWritable();
    await file.write(bytes);
    await file.close();
  } catch (error) {
    // A full disk keeps the answer from nobody.
    console.warn(`ferroflow: a download is not kept: ${error}`);
  }
}

/**
 * Fetches a file. `onProgress({url, loaded, total, cached})` is called as bytes come; `signal` ends it.
 */
export async function download(url, { onProgress, signal, cache = true } = {}) {
  let loaded = 0;
  let cached = 0;
  const range = (start, end) => fetch(url, { signal, headers: { Range: `bytes=${start}-${end - 1}` } });
  const first = await range(0, 1);
  // An empty file has no first byte.
  if (first.status === 416) return new Uint8Array();
  if (!first.ok) throw failed(url, first);
  const length = first.status === 206 ? Number(first.headers.get("Content-Range")?.split("/")[1]) : NaN;
  const total = Number.isFinite(length) ? length : Number(first.headers.get("Content-Length")) || null;
  const tell = (n) => onProgress?.({ url, loaded: (loaded += n), total, cached });
  if (!Number.isFinite(length)) return received(first, tell);
  await first.body?.cancel();
  const version = first.headers.get("ETag") ?? first.headers.get("Last-Modified");
  const folder = cache ? await folderOf(url, version && `${version} ${length}`) : null;
  const whole = new Uint8Array(length);
  for (let start = 0; start < length; start += PIECE) {
    const end = Math.min(start + PIECE, length);
    const old = folder && await kept(folder, String(start), end - start);
    if (old) {
      whole.set(old, start);
      cached += old.length;
      tell(old.length);
      continue;
    }
    const response = await range(start, end);
    if (response.status !== 206) throw failed(url, response);
    const bytes = await received(response, tell);
    if (bytes.length !== end - start) throw failed(url, { status: "cut off", statusText: `at ${start + bytes.length}` });
    whole.set(bytes, start);
    if (folder) await keep(folder, String(start), bytes);
  }
  return whole;
}
