import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { keepUnarchivedWal } from "../../../src/instance/reconcile/kept-wal.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

const archiving = { spec: { backup: { barmanObjectStore: {} } } } as unknown as Cluster;
const ready = ["000000010000000000000004", "000000010000000000000005"];

/** A volume whose copies are text. */
function world(failing?: string) {
  const tree = new Map<string, string>();
  for (const name of ready) {
    tree.set(`/v/pgdata/pg_wal/${name}`, name);
    tree.set(`/v/pgdata/pg_wal/archive_status/${name}.ready`, "");
  }
  const list = async (folder: string) => {
    const inside = [...tree.keys()].filter((path) => path.startsWith(`${folder}/`));
    return [...new Set(inside.map((path) => path.slice(folder.length + 1).split("/")[0] ?? ""))];
  };
  const run = async (command: string, args: readonly string[]) => {
    const [from = "", to = ""] = args.slice(-2);
    const failed = { code: 1, signal: null, stdout: "", stderr: "No space left on device" };
    if (command === failing) return failed;
    if (command === "cp") tree.set(to, tree.get(from) ?? "");
    if (command === "cmp" && tree.get(from) !== tree.get(to)) return failed;
    return { code: 0, signal: null, stdout: "", stderr: "" };
  };
  const logs = captureLogs();
  const clock = createFakeClock();
  const context = {
    files: { list, exists: async (path: string) => tree.has(path), makeDirectory: async () => undefined },
    paths: { pgData: "/v/pgdata", pgWal: "/v/pgdata/pg_wal" },
    processes: { run },
    logger: logs.logger,
    clock,
  } as unknown as InstanceContext;
  const kept = () => [...tree.keys()].filter((path) => path.startsWith("/v/unarchived_"));
  const keep = (cluster: Cluster) => keepUnarchivedWal(context, cluster, new AbortController().signal);
  return { tree, keep, kept, clock, logs };
}

test("segments that wait for the archiver are copied beside PGDATA and told", async () => {
  const { keep, kept, logs } = world();
  await keep(archiving);
  expect(kept()).toEqual(ready.map((name) => `/v/unarchived_20260101T000000Z/${name}`));
  expect(logs.messages("warning")).toHaveLength(1);
});

test("the next attempt copies again only what an earlier one did not finish", async () => {
  const { tree, keep, kept, clock } = world();
  await keep(archiving);
  tree.set(`/v/unarchived_20260101T000000Z/${ready[1]}`, "cut off");
  await clock.advance(60_000);
  await keep(archiving);
  expect(kept()).toHaveLength(3);
  expect(tree.get(`/v/unarchived_20260101T000100Z/${ready[1]}`)).toBe(ready[1]);
  await keep(archiving);
  expect(kept()).toHaveLength(3);
});

test("a copy that fails keeps the rewind from starting", async () => {
  await expect(world("cp").keep(archiving)).rejects.toThrow("enlarge this instance's volume");
});

test("without an archiver nothing is copied", async () => {
  const { keep, kept } = world();
  await keep({ spec: {} } as Cluster);
  expect(kept()).toEqual([]);
});
