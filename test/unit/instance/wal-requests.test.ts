import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { WalError } from "../../../src/archive/wal-error.ts";
import type { PodPlugins } from "../../../src/instance/plugins/pod-plugins.ts";
import { WalRequests } from "../../../src/instance/wal/wal-requests.ts";
import type { InTreeWal } from "../../../src/instance/wal/wal-sources.ts";
import type { WalRestorePurpose } from "../../../src/plan/instance/wal.ts";
import type { Files } from "../../../src/ports/files.ts";
import { type Plugin, PluginError, type PluginSession } from "../../../src/ports/plugin.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

type FakePlugin = Pick<Plugin, "capabilities" | "wal">;

/** A plugin that archives and restores as told. */
function fakePlugin(wal: Partial<Plugin["wal"]>, capabilities = ["TYPE_ARCHIVE_WAL", "TYPE_RESTORE_WAL"]): FakePlugin {
  return { capabilities: { wal: capabilities }, wal } as unknown as FakePlugin;
}

interface Given {
  currentPrimary?: string;
  conditions?: NonNullable<Cluster["status"]>["conditions"];
  plugins?: Record<string, FakePlugin>;
  inTree?: Partial<InTreeWal>;
  purpose?: WalRestorePurpose;
  annotations?: Record<string, string>;
}

function world(cluster: Partial<Cluster["spec"]> | undefined, given: Given = {}) {
  const { currentPrimary = "c-1", plugins = {} } = given;
  const clock = createFakeClock();
  const conditions: unknown[] = [];
  let known: Cluster | undefined;
  const set = (spec: Partial<Cluster["spec"]>) => {
    const status = { currentPrimary, targetPrimary: currentPrimary, conditions: given.conditions };
    known = { metadata: { name: "c", annotations: given.annotations }, spec, status } as Cluster;
  };
  if (cluster) set(cluster);
  let released = 0;
  const pool: PodPlugins = {
    names: async () => Object.keys(plugins),
    async use(names, work) {
      try {
        return await work({ plugins: names.map((name) => plugins[name]) } as unknown as PluginSession);
      } finally {
        released += 1;
      }
    },
    close: async () => undefined,
  };
  const marks = new Set<string>();
  const requests = new WalRequests({
    podName: "c-1",
    pgData: "/pgdata",
    markerPath: "/pgdata/.check-empty-wal-archive",
    cluster: () => known,
    purpose: async () => given.purpose ?? "standby",
    clock,
    files: { exists: async (path: string) => marks.has(path) } as unknown as Files,
    status: { setCondition: async (wanted) => void conditions.push(wanted) },
    sizeOf: async () => undefined,
    plugins: pool,
    inTree: async () => (given.inTree ?? {}) as InTreeWal,
    logger: captureLogs().logger,
  });
  return { clock, conditions, requests, set, marks, released: () => released };
}

const segment = "000000010000000000000003";
const inStore = { backup: { barmanObjectStore: { destinationPath: "s3://b/" } } };
const archiver = { plugins: [{ name: "p", isWALArchiver: true }] };
const failing = (message: string) => ({
  type: "ContinuousArchiving",
  status: "False",
  reason: "ContinuousArchivingFailing",
  message,
});
const working = {
  type: "ContinuousArchiving",
  status: "True",
  reason: "ContinuousArchivingSuccess",
  message: "Continuous archiving is working",
};

describe("archive", () => {
  test("without an archive PostgreSQL may drop its WAL, and the condition says where it goes", async () => {
    const { requests, conditions } = world({});
    expect(await requests.archive(segment)).toEqual({ code: 0, message: "" });
    await requests.archive(segment);
    expect(conditions).toMatchObject([{ status: "Unknown", reason: "ContinuousArchivingNotConfigured" }]);
  });

  test("not the current primary: refused as a warning with the original's text, and no news about archiving", async () => {
    const { requests, conditions } = world(inStore, { currentPrimary: "c-2" });
    const message = "switchover in progress, refusing archiving";
    expect(await requests.archive(segment)).toEqual({ code: 1, message, level: "warning" });
    expect(conditions).toEqual([]);
  });

  test.each<[string, Partial<Cluster["spec"]>, string]>([
    ["the archiver", archiver, "p"],
    ["a plugin that does not say what it does", { plugins: [{ name: "p" }] }, "p"],
    ["the marked one alone", { plugins: [{ name: "p" }, { name: "q", isWALArchiver: true }] }, "q"],
  ])("a plugin without a socket fails the command, once in the condition: %s", async (_name, spec, name) => {
    const { requests, conditions } = world(spec);
    const message = `wal archive plugin is not available: ${name}`;
    expect(await requests.archive(segment)).toEqual({ code: 1, message });
    await requests.archive(segment);
    expect(conditions).toEqual([failing(message)]);
  });

  test("a plugin that is switched off wants nothing", async () => {
    const { requests } = world({ plugins: [{ name: "p", enabled: false, isWALArchiver: true }] });
    expect(await requests.archive(segment)).toEqual({ code: 0, message: "" });
  });

  test("the plugin gets the absolute path, the kind, and whether the archive has to be empty", async () => {
    const calls: unknown[] = [];
    const p = fakePlugin({ archive: async (request) => void calls.push(request) });
    const { requests, conditions, marks, released } = world(archiver, { plugins: { p } });
    marks.add("/pgdata/.check-empty-wal-archive");
    expect(await requests.archive(`pg_wal/${segment}`)).toEqual({ code: 0, message: "" });
    expect(calls).toEqual([
      {
        cluster: expect.objectContaining({ kind: "Cluster", apiVersion: "postgresql.cnpg.io/v1" }),
        sourceFileName: `/pgdata/pg_wal/${segment}`,
        checkEmptyWalArchive: true,
      },
    ]);
    expect(conditions).toEqual([working]);
    expect(released()).toBe(1);
  });

  test("nobody has to find an empty archive once the user takes the responsibility for it", async () => {
    const calls: { checkEmptyWalArchive?: boolean; checkEmpty?: boolean }[] = [];
    const p = fakePlugin({ archive: async (request) => void calls.push(request) });
    const inTree = { archive: async (_archive: unknown, request: object) => void calls.push(request) };
    for (const answer of ["enabled", "disabled", undefined]) {
      const annotations = answer === undefined ? {} : { "cnpg.io/skipEmptyWalArchiveCheck": answer };
      for (const given of [world(archiver, { plugins: { p }, annotations }), world(inStore, { inTree, annotations })]) {
        given.marks.add("/pgdata/.check-empty-wal-archive");
        expect(await given.requests.archive(segment)).toEqual({ code: 0, message: "" });
      }
    }
    const asked = calls.map(({ checkEmptyWalArchive, checkEmpty }) => checkEmptyWalArchive ?? checkEmpty);
    expect(asked).toEqual([false, false, true, true, true, true]);
  });

  test("what the plugin fails with is the condition's text", async () => {
    const failure = new Error("plugin p, WAL.Archive: UNAVAILABLE: no route");
    const p = fakePlugin({ archive: () => Promise.reject(failure) });
    const { requests, conditions, released } = world(archiver, { plugins: { p } });
    expect(await requests.archive(segment)).toEqual({ code: 1, message: failure.message });
    expect(conditions).toEqual([failing(failure.message)]);
    expect(released()).toBe(1);
  });

  test("an archiver that does not archive is no success", async () => {
    const { requests } = world(archiver, { plugins: { p: fakePlugin({}, []) } });
    expect(await requests.archive(segment)).toMatchObject({ code: 1 });
  });

  test("plugins that turn out not to archive leave nobody", async () => {
    const { requests, conditions } = world({ plugins: [{ name: "p" }] }, { plugins: { p: fakePlugin({}, []) } });
    expect(await requests.archive(segment)).toEqual({ code: 0, message: "" });
    expect(conditions).toMatchObject([{ status: "Unknown" }]);
  });

  test("the Cluster's own store, and only the current primary looks ahead", async () => {
    const calls: unknown[] = [];
    const inTree = { archive: async (_archive: unknown, request: unknown) => void calls.push(request) };
    const { requests } = world(inStore, { inTree });
    expect(await requests.archive(`pg_wal/${segment}`)).toEqual({ code: 0, message: "" });
    expect(await requests.archiveAnyway(`/kept/${segment}`)).toBe(true);
    expect(calls).toEqual([
      { path: `/pgdata/pg_wal/${segment}`, checkEmpty: false, lookAhead: true },
      { path: `/kept/${segment}`, checkEmpty: false, lookAhead: false },
    ]);
  });

  test("a condition that is shown already costs no request", async () => {
    const conditions = [{ ...working, status: "True" as const, lastTransitionTime: "2026-01-01T00:00:00Z" }];
    const given = world(inStore, { conditions, inTree: { archive: async () => undefined } });
    await given.requests.archive(segment);
    expect(given.conditions).toEqual([]);
  });

  test("one that somebody changed meanwhile is sent again", async () => {
    const { requests, clock, conditions } = world(inStore, { inTree: { archive: async () => undefined } });
    await requests.archive(segment);
    await clock.advance(10_000);
    await requests.archive(segment);
    expect(conditions).toEqual([working, working]);
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
  const pluginSays = (kind: PluginError["kind"], status: string, operation = "WAL.Restore") =>
    fakePlugin({
      restore: () => Promise.reject(new PluginError(status, { plugin: "p", operation, kind, status })),
    });

  async function answerOf({ clock, requests }: ReturnType<typeof world>, advanceMs = 1_000) {
    const answer = requests.restore(segment, "pg_wal/RECOVERYXLOG");
    await clock.advance(advanceMs);
    return answer;
  }

  test("nothing is configured: not found, silently", async () => {
    expect(await world({}).requests.restore(segment, "pg_wal/x")).toEqual({ code: 1, message: "" });
  });

  test.each<[string, FakePlugin, number]>([
    ["certainly absent", pluginSays("notFound", "NOT_FOUND"), 1],
    ["the end for now", pluginSays("notFound", "OUT_OF_RANGE"), 1],
    ["no name of WAL", pluginSays("refused", "INVALID_ARGUMENT"), 1],
    ["unavailable", pluginSays("unavailable", "UNAVAILABLE"), 126],
    ["killed mid call", pluginSays("unavailable", "UNKNOWN"), 126],
    ["not set up", pluginSays("refused", "FAILED_PRECONDITION"), 126],
    ["no connection", pluginSays("notFound", "NOT_FOUND", "connect"), 126],
    ["an empty success", fakePlugin({ restore: async () => undefined }), 126],
  ])("a recovery ends by code 1 only when the file is certainly absent: %s", async (_name, p, code) => {
    const recovery = world(archiver, { plugins: { p }, purpose: "recovery" });
    expect(await answerOf(recovery, 400_000)).toMatchObject({ code });
    const standby = world(archiver, { plugins: { p }, purpose: "standby" });
    expect(await answerOf(standby)).toMatchObject({ code: 1 });
  });

  test("the source's plugin has no socket: nothing is known", async () => {
    const recovery = world(archiver, { purpose: "recovery" });
    expect(await answerOf(recovery, 400_000)).toMatchObject({
      code: 126,
      message: "plugin p has no socket in this pod",
    });
  });

  test.each<[string, WalError["kind"], number]>([
    ["absent", "notFound", 1],
    ["the store is away", "unavailable", 126],
    ["credentials are refused", "denied", 126],
  ])("the Cluster's own store: %s", async (_name, kind, code) => {
    const inTree = { restore: () => Promise.reject(new WalError(kind, kind)) };
    expect(await answerOf(world(inStore, { inTree, purpose: "recovery" }), 400_000)).toMatchObject({ code });
  });

  test("a recovery goes on once the store is back", async () => {
    let calls = 0;
    const inTree = {
      restore: async () => {
        calls += 1;
        if (calls < 4) throw new WalError("unavailable", "no route");
      },
    };
    expect(await answerOf(world(inStore, { inTree, purpose: "recovery" }), 10_000)).toEqual({ code: 0, message: "" });
    expect(calls).toBe(4);
  });

  test("a rewind says so to whoever is asked", async () => {
    const calls: unknown[] = [];
    const inTree = { restore: async (_archive: unknown, fetch: unknown) => void calls.push(fetch) };
    await world(inStore, { inTree, purpose: "rewind" }).requests.restore(segment, "/x/RECOVERYXLOG");
    expect(calls).toEqual([
      { name: segment, destination: "/x/RECOVERYXLOG", streamingAvailable: false, mode: "rewind" },
    ]);
  });
});
