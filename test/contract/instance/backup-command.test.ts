import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { backupCommand } from "../../../src/instance/backup/backup-command.ts";

let server: Server | undefined;
let asked: string[] = [];

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  asked = [];
});

/** A manager that cuts the first connections off, and then answers. */
async function startManager(cuts: number, status: number, body: string): Promise<Record<string, string>> {
  const manager = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (asked.length <= cuts) request.socket.destroy();
    else response.writeHead(status).end(body);
  });
  server = manager;
  await new Promise<void>((resolve) => manager.listen(0, "127.0.0.1", resolve));
  return { CNPG_TS_LOCAL_PORT: String((manager.address() as AddressInfo).port) };
}

test("the command asks again while the manager is being replaced", async () => {
  expect(await backupCommand("nightly 1", await startManager(2, 200, "OK"))).toBe("OK");
  expect(asked).toEqual(Array(3).fill("/pg/backup?name=nightly%201"));
});

test("a refusal is final, and told in the manager's words", async () => {
  const environment = await startManager(0, 409, "no object store is configured");
  await expect(backupCommand("b", environment)).rejects.toThrow("(409): no object store is configured");
  expect(asked).toHaveLength(1);
});
