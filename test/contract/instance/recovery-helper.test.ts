import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { withRecoveryWal } from "../../../src/instance/bootstrap/recovery-wal.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import type { PodPlugins } from "../../../src/instance/plugins/pod-plugins.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "recovery-helper-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const cluster = { metadata: { name: "c" }, spec: {} } as unknown as Cluster;

function recover(walSocket: string, work: () => Promise<string>): Promise<string> {
  const context = {
    settings: { podName: "c-1-full-recovery", namespace: "ns", environment: {} },
    paths: {
      pgData: root,
      pgWal: join(root, "pg_wal"),
      scratch: root,
      walSocket,
      checkEmptyArchive: join(root, "empty"),
    },
    state: createInstanceState(),
    data: { role: async () => "primary" },
    files: createFiles(),
    clock: createFakeClock(),
    logger: captureLogs().logger,
  } as unknown as InstanceContext;
  const plugins = { names: async () => [], close: async () => undefined } as unknown as PodPlugins;
  return withRecoveryWal(context, cluster, { kind: "none" }, plugins, work);
}

test("a restore whose helper can't begin fails with the reason before anything is restored", async () => {
  await writeFile(join(root, "ipc"), "no folder");
  let restored = false;
  const work = async () => {
    restored = true;
    return "restored";
  };
  await expect(recover(join(root, "ipc", "wal.sock"), work)).rejects.toThrow(/ENOTDIR|EEXIST/);
  expect(restored).toBe(false);
});

test("a failure of the restore itself is told too, and the helper is gone after it", async () => {
  const socket = join(root, "run", "wal.sock");
  await expect(recover(socket, () => Promise.reject(new Error("the archive is damaged")))).rejects.toThrow("damaged");
  expect(await recover(socket, async () => "restored")).toBe("restored");
});
