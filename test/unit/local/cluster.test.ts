import { describe, expect, it } from "vitest";
import { parseArchiveManifest } from "../../../local/cluster/images.ts";
import { daemonDigest } from "../../../local/cluster/inside/daemon.ts";
import { foldersUnder } from "../../../local/cluster/inside/mounts.ts";
import { isMachineCommand } from "../../../local/cluster/machine.ts";
import { podsOfBefore } from "../../../local/cluster/old-pods.ts";

describe("a daemon", () => {
  const daemon = { name: "kubelet", command: "/bin/kubelet", args: ["--a"], configuration: ["x: 1"] };

  it.each([
    ["program", { command: "/other/kubelet" }],
    ["command line", { args: ["--b"] }],
    ["configuration", { configuration: ["x: 2"] }],
    ["environment", { env: { PATH: "/x" } }],
  ])("is restarted for another %s", (_, change) => {
    expect(daemonDigest({ ...daemon, ...change })).not.toBe(daemonDigest(daemon));
  });

  it("is left alone otherwise", () => {
    expect(daemonDigest({ ...daemon, ready: async () => true })).toBe(daemonDigest(daemon));
  });
});

describe("the cluster's first process", () => {
  it.each([
    [["/cache/node-1/pause", "/var/lib/cnpg-ts/a"], true],
    [["/cache/node-1/pause", "/var/lib/cnpg-ts/b"], false],
    [["/cache/node-1/pause"], false],
    [["grep", "/var/lib/cnpg-ts/a"], false],
    [["unshare", "--", "/cache/node-1/pause", "/var/lib/cnpg-ts/a"], false],
  ])("%j is ours: %s", (command, ours) => {
    expect(isMachineCommand(command, "/var/lib/cnpg-ts/a")).toBe(ours);
  });
});

describe("folders to keep", () => {
  it("are those in or below the covered one, not those with a similar name", () => {
    expect(foldersUnder("/var/lib", ["/var/lib", "/var/lib/x", "/var/library", "/home"])).toEqual([
      "/var/lib",
      "/var/lib/x",
    ]);
  });
});

describe("pods after a restart of the cluster", () => {
  const startedAt = new Date("2026-01-01T12:00:00.700Z");
  const pod = (state: object, phase = "Running", metadata: object = {}) => ({
    metadata: { namespace: "a", name: "b", ...metadata },
    status: { phase, containerStatuses: [{ state }] },
  });

  it.each([
    ["runs since before", pod({ running: { startedAt: "2026-01-01T11:59:59Z" } }), true],
    ["runs since the same second", pod({ running: { startedAt: "2026-01-01T12:00:00Z" } }), false],
    ["was lost, nobody knows when", pod({ terminated: { reason: "Unknown" } }), true],
    ["ended since", pod({ terminated: { finishedAt: "2026-01-01T12:00:03Z" } }), false],
    ["waits", pod({ waiting: { reason: "CrashLoopBackOff" } }), false],
    ["had done its work", pod({ terminated: { finishedAt: "2026-01-01T11:00:00Z" } }, "Succeeded"), false],
    ["is being deleted", pod({ running: {} }, "Running", { deletionTimestamp: "2026-01-01T11:00:00Z" }), false],
  ])("one that %s", (_, each, old) => {
    expect(podsOfBefore([each], startedAt)).toEqual(old ? ["a/b"] : []);
  });
});

describe("an image archive", () => {
  it("is known by its configuration and its names", () => {
    const text = '[{"Config":"abc.json","RepoTags":["localhost/a:1"],"Layers":[]}]';
    expect(parseArchiveManifest(text)).toEqual({ config: "abc.json", names: ["localhost/a:1"] });
  });

  it.each(["[]", '[{"RepoTags":["a"]}]', '[{"Config":"c","RepoTags":[]}]', '[{"Config":"c","RepoTags":null}]'])(
    "that says %s is refused",
    (text) => {
      expect(() => parseArchiveManifest(text)).toThrow(/docker-archive/);
    },
  );
});
