// Files of undici, imported on their own: its entry point also loads fetch, caches and WebSockets, which would cost each
// instance manager 6 MB and 40 ms for nothing. The version is pinned, and the contract tests run on these files.
declare module "undici/lib/dispatcher/pool.js" {
  import type { Pool } from "undici";

  const pool: typeof Pool;
  export = pool;
}

declare module "undici/lib/api/api-request.js" {
  import type { Dispatcher } from "undici";

  function request(this: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
  export = request;
}

declare module "undici/lib/dispatcher/agent.js" {
  import type { Agent } from "undici";

  const agent: typeof Agent;
  export = agent;
}
