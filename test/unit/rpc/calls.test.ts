import { describe, expect, it } from "vitest";
import { PluginError } from "../../../src/ports/plugin.ts";
import { enrichConfiguration } from "../../../src/rpc/calls/configuration.ts";
import { runLifecycleHooks, wantsHook } from "../../../src/rpc/calls/lifecycle.ts";
import { collectMetrics } from "../../../src/rpc/calls/metrics.ts";
import {
  collectPluginStatuses,
  deregisterPlugins,
  mutateCluster,
  validateClusterChange,
  validateClusterCreate,
} from "../../../src/rpc/calls/operator.ts";
import { buildPluginStatus } from "../../../src/rpc/calls/plugin-status.ts";
import { runReconcilerHooks } from "../../../src/rpc/calls/reconciler.ts";
import { restoreByPlugin } from "../../../src/rpc/calls/restore-job.ts";
import { archiveWal, restoreWal } from "../../../src/rpc/calls/wal.ts";
import { fakePlugin } from "./fake-plugin.ts";

const cluster = { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "c" }, spec: {} };
const backup = { apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", metadata: { name: "b" } };
const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: ["a"] } };
const patch = (...operations: object[]) => Buffer.from(JSON.stringify(operations));
const failed = (kind: PluginError["kind"]) => new PluginError(kind, { plugin: "x", operation: "o", kind });

describe("lifecycle hooks", () => {
  const lifecycle = [{ group: "", kind: "Pod", operations: ["create", "evaluate"] as const }];
  const adding = (name: string) =>
    fakePlugin(name, { lifecycle }, () => patch({ op: "add", path: "/spec/containers/-", value: name }));

  it("run in order, each on what the one before made", async () => {
    const seen: unknown[] = [];
    const last = fakePlugin("z", { lifecycle }, (_, request) => {
      seen.push((request as { object: object }).object);
      return new Uint8Array();
    });
    const result = await runLifecycleHooks([adding("x"), adding("y"), last], {
      operation: "create",
      cluster,
      object: pod,
    });
    expect(result).toEqual({ ...pod, spec: { containers: ["a", "x", "y"] } });
    expect(seen).toEqual([result]);
    expect(pod.spec.containers).toEqual(["a"]);
  });

  it("leave the object itself when nobody is interested", async () => {
    const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "j" } };
    const call = { operation: "create", cluster, object: job } as const;
    expect(await runLifecycleHooks([adding("x")], call)).toBe(job);
    expect(await runLifecycleHooks([adding("x")], { ...call, operation: "delete", object: pod })).toBe(pod);
  });

  it("know what an item of a list is", async () => {
    const { apiVersion: _, kind: __, ...item } = pod;
    const call = { operation: "create", cluster, object: item } as const;
    expect(await runLifecycleHooks([adding("x")], call)).toBe(item);
    const type = { group: "", version: "v1", kind: "Pod" };
    expect(await runLifecycleHooks([adding("x")], { ...call, type })).toEqual({
      ...pod,
      spec: { containers: ["a", "x"] },
    });
    const idle = fakePlugin("z", { lifecycle }, () => new Uint8Array());
    expect(await runLifecycleHooks([idle], { ...call, type })).toBe(item);
  });

  it("fail as the plugin's failure when the patch does not fit", async () => {
    const wrong = fakePlugin("w", { lifecycle }, () => patch({ op: "replace", path: "/spec/nothing", value: 1 }));
    const running = runLifecycleHooks([wrong, adding("x")], { operation: "create", cluster, object: pod });
    await expect(running).rejects.toMatchObject({ name: "PluginError", plugin: "w", kind: "protocol" });
  });

  it.each([
    ["v1", "Pod", "create", true],
    ["v1", "Pod", "patch", false],
    ["v1", "Service", "create", false],
    ["batch/v1", "Pod", "create", false],
  ] as const)("are wanted for %s %s %s: %s", (apiVersion, kind, operation, wanted) => {
    expect(wantsHook(adding("x"), { apiVersion, kind, metadata: {} }, operation)).toBe(wanted);
  });
});

describe("reconciler hooks", () => {
  const answering = (name: string, behavior: string, calls: string[] = []) =>
    fakePlugin(name, { reconciler: ["KIND_CLUSTER"] }, (label) => {
      calls.push(`${name} ${label}`);
      return { behavior, requeueAfterSeconds: 5 };
    });

  it.each([
    ["continue", { kind: "continue" }, 2],
    ["requeue", { kind: "requeue", plugin: "a", afterSeconds: 5 }, 1],
    ["terminate", { kind: "terminate", plugin: "a" }, 1],
  ])("%s decides", async (behavior, decision, count) => {
    const calls: string[] = [];
    const plugins = [answering("a", behavior, calls), answering("b", "continue", calls)];
    expect(await runReconcilerHooks(plugins, "pre", { cluster, resource: cluster })).toEqual(decision);
    expect(calls).toEqual(["a ReconcilerHooks.Pre", "b ReconcilerHooks.Pre"].slice(0, count));
  });

  it("are only for the kinds that the plugin named", async () => {
    const calls: string[] = [];
    const plugins = [answering("a", "terminate", calls)];
    expect(await runReconcilerHooks(plugins, "post", { cluster, resource: backup })).toEqual({ kind: "continue" });
    expect(await runReconcilerHooks(plugins, "post", { cluster, resource: pod })).toEqual({ kind: "continue" });
    expect(calls).toEqual([]);
  });
});

describe("the operator service", () => {
  it("mutations are chained", async () => {
    const growing = (name: string, path: string) =>
      fakePlugin(name, { operator: ["TYPE_MUTATE_CLUSTER"] }, () => patch({ op: "add", path, value: {} }));
    const result = await mutateCluster([growing("a", "/spec/x"), growing("b", "/spec/x/y")], cluster);
    expect(result).toEqual({ ...cluster, spec: { x: { y: {} } } });
  });

  it("complaints are collected from those that validate", async () => {
    const complaint = { path: ["spec"], value: "", message: "no" };
    const a = fakePlugin("a", { operator: ["TYPE_VALIDATE_CLUSTER_CREATE"] }, () => [complaint]);
    const b = fakePlugin("b", { operator: ["TYPE_VALIDATE_CLUSTER_CHANGE"] }, () => [complaint, complaint]);
    expect(await validateClusterCreate([a, b], cluster)).toHaveLength(1);
    expect(await validateClusterChange([a, b], { before: cluster, after: cluster })).toHaveLength(2);
  });

  it("statuses and goodbyes go to those that offer them", async () => {
    const calls: string[] = [];
    const a = fakePlugin("a", { operator: ["TYPE_SET_STATUS_IN_CLUSTER"] }, (label) => {
      calls.push(label);
      return '{"a":1}';
    });
    const b = fakePlugin("b", { operator: ["TYPE_SET_STATUS_IN_CLUSTER", "TYPE_DEREGISTER"] }, (label) => {
      calls.push(label);
      return "";
    });
    expect([...(await collectPluginStatuses([a, b], cluster))]).toEqual([["a", '{"a":1}']]);
    await deregisterPlugins([a, b], cluster);
    expect(calls).toEqual(["Operator.SetStatusInCluster", "Operator.SetStatusInCluster", "Operator.Deregister"]);
  });
});

describe("plugin status", () => {
  const plugin = fakePlugin("p", { services: ["TYPE_WAL_SERVICE"], wal: ["TYPE_ARCHIVE_WAL"] }, () => "");

  it("holds the protocol's names, and no empty list", () => {
    expect(buildPluginStatus([plugin])).toEqual([
      { name: "p", version: "1.0.0", capabilities: ["TYPE_WAL_SERVICE"], walCapabilities: ["TYPE_ARCHIVE_WAL"] },
    ]);
  });

  it("keeps the plugin's own text until there is a new one", () => {
    const before = [{ name: "p", version: "0.9", status: "old" }];
    expect(buildPluginStatus([plugin], before)[0]?.status).toBe("old");
    expect(buildPluginStatus([plugin], before, new Map([["p", "new"]]))[0]?.status).toBe("new");
  });
});

describe("WAL", () => {
  const archiver = (name: string, error?: Error) =>
    fakePlugin(name, { wal: ["TYPE_ARCHIVE_WAL", "TYPE_RESTORE_WAL"] }, () => {
      if (error) throw error;
    });
  const other = fakePlugin("other", { wal: ["TYPE_STATUS"] }, () => {
    throw new Error("not to be called");
  });
  const archive = { cluster, sourceFileName: "/p/1", checkEmptyWalArchive: false };
  const restore = { cluster, sourceWalName: "W", destinationFileName: "/d" };

  it("is archived by every plugin that archives", async () => {
    expect(await archiveWal([archiver("a"), other, archiver("b")], archive)).toEqual(["a", "b"]);
    expect(await archiveWal([other], archive)).toEqual([]);
    const failing = archiveWal([archiver("a", failed("unavailable")), archiver("b")], archive);
    await expect(failing).rejects.toMatchObject({ kind: "unavailable" });
  });

  it.each<[string, (Error | undefined)[], string]>([
    ["the first has it", [undefined, failed("unavailable")], "restored"],
    ["the second has it", [failed("unavailable"), undefined], "restored"],
    ["nobody has it", [failed("notFound"), failed("notFound")], "notFound"],
    ["one could not say", [failed("notFound"), failed("unavailable")], "failed"],
    ["one refused", [failed("refused")], "failed"],
    ["there is no plugin", [], "noPlugin"],
  ])("restore, when %s", async (_, errors, kind) => {
    const plugins = errors.map((error, index) => archiver(`p${index}`, error));
    expect(await restoreWal([other, ...plugins], restore)).toMatchObject({ kind });
  });

  it("a fault of our own is no answer of the archive", async () => {
    await expect(restoreWal([archiver("a", new TypeError("bug"))], restore)).rejects.toThrow("bug");
  });
});

describe("a restore job", () => {
  it("uses the first plugin that restores, and never none", async () => {
    const result = { restoreConfig: "", envs: [] };
    const plugin = fakePlugin("r", { restoreJob: ["KIND_RESTORE"] }, () => result);
    const other = fakePlugin("o", {}, () => expect.fail("not to be called"));
    expect(await restoreByPlugin([other, plugin], { cluster })).toEqual(result);
    await expect(restoreByPlugin([other], { cluster })).rejects.toThrow(
      "no plugin restores base backups (reachable: o)",
    );
  });
});

describe("configuration", () => {
  it("is chained, and an empty answer keeps what is there", async () => {
    const plugin = (name: string, answer: (configs: Record<string, string>) => object) =>
      fakePlugin(name, { postgres: ["TYPE_ENRICH_CONFIGURATION"] }, (_, request) =>
        answer((request as { configs: Record<string, string> }).configs),
      );
    const plugins = [
      plugin("a", (configs) => ({ ...configs, x: "1" })),
      plugin("b", () => ({})),
      plugin("c", (configs) => ({ ...configs, y: `${configs["x"]}2` })),
    ];
    const configs = { archive_mode: "on" };
    expect(await enrichConfiguration(plugins, { cluster, configs, operation: "init" })).toEqual({
      archive_mode: "on",
      x: "1",
      y: "12",
    });
    expect(await enrichConfiguration([], { cluster, configs, operation: "init" })).toBe(configs);
  });
});

describe("metrics", () => {
  const definition = { name: "m", help: "h", variableLabels: ["l"], constLabels: {}, type: "gauge" as const };
  const plugin = (name: string, samples: object[]) =>
    fakePlugin(name, { metrics: ["TYPE_METRICS"] }, (label) => (label === "Metrics.Define" ? [definition] : samples));

  it("of one plugin survive the failure of another", async () => {
    const good = plugin("good", [{ name: "m", value: 1, variableLabels: ["v"] }]);
    const undefinedName = plugin("bad", [{ name: "n", value: 1, variableLabels: [] }]);
    const labels = plugin("ugly", [{ name: "m", value: 1, variableLabels: [] }]);
    const { metrics, errors } = await collectMetrics([good, undefinedName, labels], cluster);
    expect(metrics).toEqual([{ ...definition, samples: [{ name: "m", value: 1, variableLabels: ["v"] }] }]);
    expect(errors.map(({ message }) => message)).toEqual([
      "plugin bad, Metrics.Collect: metric n is not defined",
      "plugin ugly, Metrics.Collect: metric m has 0 label values for 1 labels",
    ]);
  });
});
