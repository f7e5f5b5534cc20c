import { randomInt } from "node:crypto";
import { createServer } from "node:net";

// Below the range from which the kernel takes ports of outgoing connections, so that a port stays free
// while its server is stopped for a test.
const lowest = 18_000;
const highest = 29_999;

/** Whether a server could listen on that loopback port now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A loopback port nobody listens on: the preferred one if it is free, else a random one. */
export async function choosePort(
  preferred?: number,
  isFree: (port: number) => Promise<boolean> = isPortFree,
  random: () => number = () => randomInt(lowest, highest + 1),
): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = random();
    if (await isFree(port)) return port;
  }
  throw new Error(`no free loopback port between ${lowest} and ${highest}`);
}
