// The configuration that Jobs write, as plugins beside them change it: real servers on sockets, real files.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { writeCustomConf } from "../../../src/instance/configuration-files.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { instancePaths } from "../../../src/instance/instance-paths.ts";
import type { InstanceSettings } from "../../../src/instance/settings.ts";
import { createPluginServer, type PluginServer } from "../../../src/plugin/framework/index.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { captureLogs } from "../../support/log-capture.ts";

let folder: string;
let context: InstanceContext;
const servers: PluginServer[] = [];
/** What plugins were asked, in order. */
let asked: [plugin: string, operation: string, setting: string | undefined][];
let failure: string | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "job-plugins-"));
  const sockets = join(folder, "plugins");
  const pgData = join(folder, "data");
  for (const path of [sockets, pgData]) mkdirSync(path);
  writeFileSync(join(pgData, "postgresql.conf"), "");
  const settings = {
    pgData,
    scratch: folder,
    walVolume: folder,
    podName: "c-1",
    postgresPort: 5432,
    environment: { PLUGIN_SOCKET_DIR: sockets },
  } as unknown as InstanceSettings;
  const { logger } = captureLogs();
  const deps = { files: createFiles(), clock: systemClock, random: systemRandom, logger };
  context = { ...deps, settings, paths: instancePaths(settings) } as unknown as InstanceContext;
  for (const name of ["a.example.com", "b.example.com", "off.example.com"]) {
    const server = await createPluginServer({
      identity: { name, version: "1", displayName: name, license: "MIT", injectsJobSidecar: true },
      listen: { kind: "socket", folder: sockets },
      logger,
      services: {
        postgres: {
          enrichConfiguration({ configs, operation }) {
            asked.push([name, operation, configs["example.chain"]]);
            if (failure) throw new Error(failure);
            const chain = [configs["example.chain"], name.slice(0, 1)].filter(Boolean).join("");
            return { ...configs, "example.chain": chain, archive_command: "from the plugin" };
          },
        },
      },
    });
    servers.push(server);
  }
});

beforeEach(() => {
  asked = [];
  failure = undefined;
});

afterAll(async () => {
  await Promise.all(servers.map((it) => it.stop({ graceMs: 0 })));
  rmSync(folder, { recursive: true, force: true });
});

const cluster = (names: readonly string[], capability = "TYPE_INSTANCE_JOB_SIDECAR_INJECTION"): Cluster => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "c", namespace: "ns" },
  spec: {
    instances: 1,
    plugins: [...names.map((name) => ({ name })), { name: "off.example.com", enabled: false }],
  } as Cluster["spec"],
  status: {
    pluginStatus: [...names, "off.example.com"].map((name) => ({ name, version: "1", capabilities: [capability] })),
  },
});
const line = (name: string) =>
  readFileSync(context.paths.customConf, "utf8")
    .split("\n")
    .find((it) => it.startsWith(`${name} =`));

test("initdb's configuration passes through the plugins, each seeing what the one before it made", async () => {
  await writeCustomConf(context, cluster(["b.example.com", "a.example.com"]), { major: 17, mode: "init" });
  expect(asked).toEqual([
    ["a.example.com", "init", undefined],
    ["b.example.com", "init", "a"],
  ]);
  expect(line("example.chain")).toBe("example.chain = 'ab'");
});

test("what a recovery itself needs is not the plugins' to change", async () => {
  const options = { major: 17, mode: "restore", overrides: { archive_command: "false" } } as const;
  await writeCustomConf(context, cluster(["a.example.com"]), options);
  expect(asked).toEqual([["a.example.com", "restore", undefined]]);
  expect(line("example.chain")).toBe("example.chain = 'a'");
  expect(line("archive_command")).toBe("archive_command = 'false'");
});

test("plugins without a socket in the Job, and such as serve instances only, are passed over", async () => {
  await writeCustomConf(context, cluster(["gone.example.com", "b.example.com"]), { major: 17, mode: "init" });
  expect(asked).toEqual([["b.example.com", "init", undefined]]);
  asked = [];
  const instancesOnly = cluster(["a.example.com"], "TYPE_INSTANCE_SIDECAR_INJECTION");
  await writeCustomConf(context, instancesOnly, { major: 17, mode: "init" });
  expect(asked).toEqual([]);
  expect(line("example.chain")).toBeUndefined();
});

test("a plugin that fails fails the Job's configuration and leaves the file as it was", async () => {
  const before = readFileSync(context.paths.customConf, "utf8");
  failure = "no opinion today";
  const work = writeCustomConf(context, cluster(["a.example.com"]), { major: 17, mode: "init" });
  await expect(work).rejects.toThrow("no opinion today");
  expect(readFileSync(context.paths.customConf, "utf8")).toBe(before);
});
