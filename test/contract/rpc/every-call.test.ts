import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkHealth } from "../../../src/rpc/check-health.ts";
import { createLab, type Lab, type Transport } from "./lab.ts";
import { everyCall, recordingPlugin } from "./recording-plugin.ts";

describe.each<Transport>(["socket", "tls"])("our client and our server over %s", (transport) => {
  let lab: Lab;
  beforeEach(async () => {
    lab = await createLab();
  });
  afterEach(() => lab.end());

  it("exchange every call", async () => {
    const seen: [string, unknown][] = [];
    const { endpoint } = await lab.start(transport, recordingPlugin(seen));
    const plugin = await lab.load(endpoint);

    expect(plugin.metadata).toMatchObject({ version: "1.2.3", displayName: "Lab", manifest: { a: "b" } });
    expect(plugin.capabilities).toEqual({
      services: [
        "TYPE_OPERATOR_SERVICE",
        "TYPE_LIFECYCLE_SERVICE",
        "TYPE_RECONCILER_HOOKS",
        "TYPE_WAL_SERVICE",
        "TYPE_BACKUP_SERVICE",
        "TYPE_RESTORE_JOB",
        "TYPE_POSTGRES",
        "TYPE_METRICS",
        "TYPE_INSTANCE_SIDECAR_INJECTION",
        "TYPE_INSTANCE_JOB_SIDECAR_INJECTION",
      ],
      operator: [
        "TYPE_VALIDATE_CLUSTER_CREATE",
        "TYPE_VALIDATE_CLUSTER_CHANGE",
        "TYPE_MUTATE_CLUSTER",
        "TYPE_SET_STATUS_IN_CLUSTER",
        "TYPE_DEREGISTER",
      ],
      lifecycle: [{ group: "", kind: "Pod", operations: ["create", "evaluate"] }],
      wal: ["TYPE_ARCHIVE_WAL", "TYPE_RESTORE_WAL", "TYPE_STATUS", "TYPE_SET_FIRST_REQUIRED"],
      backup: ["TYPE_BACKUP"],
      reconciler: ["KIND_CLUSTER", "KIND_BACKUP"],
      restoreJob: ["KIND_RESTORE"],
      postgres: ["TYPE_ENRICH_CONFIGURATION"],
      metrics: ["TYPE_METRICS"],
    });
    for (const [label, call, request, answer] of everyCall) {
      expect(await call(plugin), label).toEqual(answer);
      expect(seen.pop(), label).toEqual([label, request]);
    }
    expect(seen).toEqual([]);
  });

  it("answer health checks", async () => {
    const recording = recordingPlugin([]);
    let ready = true;
    const identity = { ...recording.identity, ready: () => ready };
    const { endpoint } = await lab.start(transport, { ...recording, identity });
    expect(await checkHealth(endpoint, 5_000)).toBe("serving");
    ready = false;
    expect(await checkHealth(endpoint, 5_000)).toBe("notServing");
  });
});
