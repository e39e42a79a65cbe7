// Files on loopback, with ranges and versions.

import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };

/** Serves folders under names: `{"": folder, cases: folder}`. Gives `{url, close, requests}`. */
export function serve(folders, port = 0) {
  const requests = [];
  const server = createServer((request, response) => {
    const [, first, ...rest] = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)).split("/");
    const path = folders[first] ? join(folders[first], ...rest) : join(folders[""], first, ...rest);
    requests.push({ path, range: request.headers.range });
    let file;
    try {
      file = statSync(path);
    } catch {
      return response.writeHead(404).end();
    }
    if (file.isDirectory()) return response.writeHead(302, { Location: "index.html" }).end();
    const headers = { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream", ETag: `"${file.size}-${file.mtimeMs}"`, "Accept-Ranges": "bytes" };
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    if (!range) {
      response.writeHead(200, { ...headers, "Content-Length": file.size });
      return createReadStream(path).pipe(response);
    }
    const [start, end] = [Number(range[1]), Math.min(Number(range[2]), file.size - 1)];
    if (start > end) return response.writeHead(416, { "Content-Range": `bytes */${file.size}` }).end();
    response.writeHead(206, { ...headers, "Content-Length": end - start + 1, "Content-Range": `bytes ${start}-${end}/${file.size}` });
    createReadStream(path, { start, end }).pipe(response);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => {
    resolve({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close(), requests });
  }));
}
