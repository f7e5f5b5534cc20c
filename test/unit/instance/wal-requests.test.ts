import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { ClusterStatusWriter } from "../../../src/instance/reconcile/cluster-status.ts";
import { WalRequests } from "../../../src/instance/wal/wal-requests.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

function world(cluster: Partial<Cluster["spec"]> | undefined, currentPrimary = "c-1") {
  const clock = createFakeClock();
  const conditions: unknown[] = [];
  let known: Cluster | undefined;
  const set = (spec: Partial<Cluster["spec"]>) => {
    known = { metadata: { name: "c" }, spec, status: { currentPrimary, targetPrimary: currentPrimary } } as Cluster;
  };
  if (cluster) set(cluster);
  const status = {
    setCondition: async (wanted: unknown) => void conditions.push(wanted),
  } as unknown as ClusterStatusWriter;
  const requests = new WalRequests({
    podName: "c-1",
    cluster: () => known,
    clock,
    status,
    logger: captureLogs().logger,
  });
  return { clock, conditions, requests, set };
}

const segment = "000000010000000000000003";

describe("archive", () => {
  test("without an archive PostgreSQL may drop its WAL", async () => {
    expect(await world({}).requests.archive(segment)).toEqual({ code: 0, message: "" });
  });

  test("not the current primary: refused with the original's text", async () => {
    expect(await world({}, "c-2").requests.archive(segment)).toEqual({
      code: 1,
      message: "switchover in progress, refusing archiving",
    });
  });

  test("a plugin that can't be reached is told once in the condition", async () => {
    const { requests, conditions } = world({ plugins: [{ name: "p", isWALArchiver: true }] });
    expect(await requests.archive(segment)).toEqual({ code: 1, message: "wal archive plugin is not available: p" });
    await requests.archive(segment);
    expect(conditions).toEqual([
      {
        type: "ContinuousArchiving",
        status: "False",
        reason: "ContinuousArchivingFailing",
        message: "wal archive plugin is not available: p",
      },
    ]);
  });

  test.each<[string, Partial<Cluster["spec"]>, string]>([
    ["a plugin that does not say what it does", { plugins: [{ name: "p" }] }, "wal archive plugin is not available: p"],
    [
      "the one that archives is named first",
      { plugins: [{ name: "p" }, { name: "q", isWALArchiver: true }] },
      "wal archive plugin is not available: q",
    ],
    [
      "an object store",
      { backup: { barmanObjectStore: { destinationPath: "s3://b/" } } },
      "archiving to spec.backup.barmanObjectStore is not available in this version",
    ],
  ])("nothing is acknowledged that somebody may want: %s", async (_name, spec, message) => {
    const { requests, conditions } = world(spec);
    expect(await requests.archive(segment)).toEqual({ code: 1, message });
    expect(conditions).toMatchObject([{ type: "ContinuousArchiving", status: "False", message }]);
  });

  test("a plugin that is switched off wants nothing", async () => {
    const { requests } = world({ plugins: [{ name: "p", enabled: false, isWALArchiver: true }] });
    expect(await requests.archive(segment)).toEqual({ code: 0, message: "" });
  });

  test("a request that comes before the Cluster was read waits for it", async () => {
    const { requests, clock, set } = world(undefined);
    const answer = requests.archive(segment);
    await clock.advance(3_000);
    set({});
    await clock.advance(100);
    expect(await answer).toEqual({ code: 0, message: "" });
  });

  test("and gives up when it does not come", async () => {
    const { requests, clock } = world(undefined);
    const answer = requests.archive(segment);
    await clock.advance(11_000);
    expect(await answer).toEqual({ code: 1, message: "the Cluster has not been read yet" });
  });
});

describe("restore", () => {
  test("nothing is configured: not found, silently", async () => {
    expect(await world({}).requests.restore(segment, "pg_wal/x")).toEqual({ code: 1, message: "" });
  });
});
