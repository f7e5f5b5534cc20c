import { expect, test } from "vitest";
import { reportOperatingSystem } from "../../../src/instance/operating-system.ts";
import type { Files } from "../../../src/ports/files.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

async function report(read: (path: string) => Promise<string | undefined>) {
  const logs = captureLogs();
  await reportOperatingSystem({ files: { read } as Files, clock: createFakeClock(), logger: logs.logger });
  return logs.records;
}

test("what the table says of the system is told once at the start", async () => {
  const records = await report(async (path) => (path === "/etc/os-release" ? 'VERSION="13 (trixie)"\n' : undefined));
  const entry = {
    version: "13 (trixie)",
    deprecatedFrom: "2028-08-09T00:00:00Z",
    supportedUntil: "2030-06-30T00:00:00Z",
  };
  expect(records).toEqual([{ level: "info", message: "OS distribution is supported", fields: { entry } }]);
});

test("the file below /usr counts where /etc has none, and a system that the table lacks is a warning", async () => {
  const records = await report(async (path) => (path === "/usr/lib/os-release" ? "VERSION=3.22\n" : undefined));
  expect(records).toMatchObject([{ level: "warning", fields: { version: "3.22" } }]);
});

test("a system without the file says nothing, and one whose file cannot be read does not keep the instance from starting", async () => {
  expect(await report(async () => undefined)).toEqual([]);
  const refused = await report(() => Promise.reject(new Error("permission denied")));
  expect(refused.map(({ level }) => level)).toEqual(["debug"]);
});
