import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { FailoverQuorumStep } from "../../../src/instance/reconcile/failover-quorum.ts";
import { resources } from "../../../src/kube/resources.ts";
import { formatCustomConf } from "../../../src/postgres/configuration.ts";
import { buildSettings } from "../../../src/postgres/custom-conf.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { aCluster } from "../plan/cluster/fixtures.ts";

const signal = new AbortController().signal;
const known = { method: "ANY", standbyNames: ["c-2"], standbyNumber: 1, primary: "c-1" };

function clusterOf(instanceNames: string[], change: Partial<NonNullable<Cluster["status"]>> = {}): Cluster {
  return aCluster(
    { postgresql: { synchronous: { method: "any", number: 1, failoverQuorum: true } } },
    { currentPrimary: "c-1", targetPrimary: "c-1", instanceNames, ...change },
  );
}

/** The step of `c-1`, whose file on disk was written from a cluster, and whose record is known. */
function world(written: Cluster) {
  const kube = createFakeKubeApi({ clock: createFakeClock() });
  const record = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "FailoverQuorum",
    metadata: { namespace: "ns", name: "c" },
  };
  kube.seed(resources.failoverQuorums, { ...record, status: known } as never);
  const { text } = formatCustomConf(buildSettings(written, { major: 17, mode: "run" }));
  const context = {
    kube,
    settings: { podName: "c-1", namespace: "ns", clusterName: "c" },
    paths: { customConf: "custom.conf" },
    files: { read: async () => text },
  } as unknown as InstanceContext;
  const status = () => kube.peek(resources.failoverQuorums, { namespace: "ns", name: "c" })?.status ?? {};
  return { step: new FailoverQuorumStep(context), kube, status };
}

test("the record goes before a file with other standbys is written", async () => {
  const { step, status } = world(clusterOf(["c-1", "c-2"]));
  await step.announce(clusterOf(["c-1", "c-2"]), signal);
  expect(status()).toEqual(known);
  await step.announce(clusterOf(["c-1", "c-2", "c-3"]), signal);
  expect(status()).toEqual({});
});

test("only the settled primary touches the record", async () => {
  const { step, status, kube } = world(clusterOf(["c-1", "c-2"]));
  await step.announce(clusterOf(["c-1", "c-3"], { targetPrimary: "c-2" }), signal);
  await step.announce(clusterOf(["c-1", "c-3"], { currentPrimary: "c-2" }), signal);
  expect(status()).toEqual(known);
  expect(kube.requests).toEqual([]);
});
