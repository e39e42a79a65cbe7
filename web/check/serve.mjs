// Serves the package's folder on loopback, for the demo.

import { serve } from "./server.mjs";

const { url } = await serve({ "": process.argv[2] }, 8080);
console.log(`${url}demo/index.html`);
