import fc from "fast-check";
import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { buildInstancePod } from "../../../src/build/instance-pod.ts";
import { createAdmissionGuard } from "../../../src/operator/admission-guard.ts";
import { judgeDefinition } from "../../../src/plan/instance/definition.ts";
import { clusterArbitrary } from "../build/cluster-arbitrary.ts";

const me = { goArch: "amd64", hash: "mine" };
const status = { availableArchitectures: [me] };

/** What an operator may be set to, of what decides about defaults. */
const settings = fc.record({
  defaultPostgresImage: fc.constantFrom("pg:17.6", "pg:18"),
  monitoringQueriesConfigMap: fc.constantFrom("", "queries"),
  monitoringQueriesSecret: fc.constantFrom("", "queries"),
  includePlugins: fc.constantFrom([], ["p.example.org"]),
});

/** The arbitrary's clusters are wrong in so many ways that few are admitted: these have the most frequent ones put right. */
const oftenRight = clusterArbitrary.map((cluster): Cluster => {
  const { instances, bootstrap, postgresql, enableSuperuserAccess } = cluster.spec;
  const kept = { instances, ...(bootstrap ? { bootstrap } : {}), ...(postgresql ? { postgresql } : {}) };
  const metadata = { ...cluster.metadata, name: "db", annotations: {} };
  const set = { imageName: "pg:17.6", storage: { size: "1Gi" }, enableSuperuserAccess: enableSuperuserAccess ?? false };
  return { ...cluster, metadata, spec: { ...kept, ...set } };
});

/** The cluster as an operator leaves it, when it admits it. */
function admittedBy(context: typeof defaultBuildContext, given: Cluster): Cluster | undefined {
  const guard = createAdmissionGuard(context);
  let cluster = given;
  for (let pass = 0; pass < 4; pass += 1) {
    const verdict = guard.check(cluster);
    if (verdict.kind === "admitted") return verdict.cluster;
    if (verdict.kind === "rejected") return undefined;
    cluster = verdict.cluster;
  }
  throw new Error("the operator does not come to an end with the defaults");
}

test("what an operator has admitted no pod of it holds back, whatever the operator is set to", () => {
  const seen = { admitted: 0, refused: 0 };
  fc.assert(
    fc.property(fc.oneof(clusterArbitrary, oftenRight), settings, (given, set) => {
      const context = { ...defaultBuildContext, ...set };
      const cluster = admittedBy(context, { ...given, status });
      seen[cluster ? "admitted" : "refused"] += 1;
      if (!cluster) return;
      expect(judgeDefinition({ ...cluster, status }, me)).toEqual({ kind: "admitted" });
      // It has been through the API server by then, and a pod can be made of it.
      const stored = JSON.parse(JSON.stringify({ ...cluster, status })) as Cluster;
      expect(judgeDefinition(stored, me)).toEqual({ kind: "admitted" });
      expect(buildInstancePod(stored, 1, context).spec?.containers.length).toBeGreaterThan(0);
    }),
    { numRuns: 400 },
  );
  expect(seen.admitted).toBeGreaterThan(10);
  expect(seen.refused).toBeGreaterThan(10);
});

test("what an operator refuses its pods hold back", () => {
  fc.assert(
    fc.property(clusterArbitrary, settings, (given, set) => {
      const context = { ...defaultBuildContext, ...set };
      const cluster: Cluster = { ...given, status };
      if (createAdmissionGuard(context).check(cluster).kind === "admitted") return;
      const verdict = judgeDefinition(cluster, me);
      // Only what the operator's own settings add is not missed in a pod.
      if (verdict.kind === "admitted") expect(admittedBy(context, cluster)).toBeDefined();
    }),
    { numRuns: 400 },
  );
});
