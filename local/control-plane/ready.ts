import { request } from "node:https";

/** Whether the API server answers its readiness check; any failure counts as "not yet". */
export function isApiServerReady(url: string, authority: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request(
      `${url}/readyz`,
      // A connection of its own for each look: a kept one would say nothing about a restarted server.
      { ca: authority, headers: { authorization: `Bearer ${token}` }, agent: false, timeout: 2_000 },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(false));
    call.end();
  });
}
