import { describe, expect, it } from "vitest";
import { defaultDeadlineMs } from "../../../src/rpc/deadlines.ts";

const socket = { kind: "socket", name: "p", path: "/plugins/p" } as const;
const tls = {
  kind: "tls",
  name: "p",
  address: "p:1",
  serverName: "p",
  serverRoots: "",
  clientCertificate: "",
  clientKey: "",
} as const;

describe("default deadlines", () => {
  it.each([
    ["WAL.Archive", null, null],
    ["WAL.Restore", null, null],
    ["Backup.Backup", null, null],
    ["RestoreJobHooks.Restore", null, null],
    ["Metrics.Collect", 10_000, 30_000],
    ["Postgres.EnrichConfiguration", 10_000, 30_000],
    ["Identity.Probe", 10_000, 30_000],
    ["ReconcilerHooks.Pre", 30_000, 30_000],
    ["OperatorLifecycle.LifecycleHook", 30_000, 30_000],
    ["WAL.Status", 30_000, 30_000],
  ])("%s: %s ms on a socket, %s ms over TCP", (label, onSocket, overTcp) => {
    expect(defaultDeadlineMs(socket, label)).toBe(onSocket);
    expect(defaultDeadlineMs(tls, label)).toBe(overTcp);
  });
});
