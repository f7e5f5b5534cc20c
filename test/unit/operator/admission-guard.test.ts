import { describe, expect, it } from "vitest";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { createAdmissionGuard } from "../../../src/operator/admission-guard.ts";
import { aCluster } from "../plan/cluster/fixtures.ts";

const guard = () => createAdmissionGuard(defaultBuildContext);

describe("the admission guard", () => {
  it("asks for defaults to be written, and then admits", () => {
    const first = guard().check(aCluster());
    if (first.kind !== "defaulted") throw new Error(`unexpected verdict ${first.kind}`);
    expect(first.cluster.spec.postgresql?.parameters?.["wal_level"]).toBe("logical");
    expect(guard().check(first.cluster).kind).toBe("admitted");
  });

  it("names the fields it refuses, in the phase's words", () => {
    const defaulted = guard().check(aCluster({ storage: { size: "much" } }));
    if (defaulted.kind !== "defaulted") throw new Error(`unexpected verdict ${defaulted.kind}`);
    const verdict = guard().check(defaulted.cluster);
    expect(verdict).toMatchObject({
      kind: "rejected",
      reason: "the resource failed admission validation on: spec.storage.size (see the operator logs for details)",
    });
  });

  it("judges anew when the spec changes, and hands on the cluster as it is now", () => {
    const it = guard();
    const defaulted = it.check(aCluster());
    if (defaulted.kind !== "defaulted") throw new Error(`unexpected verdict ${defaulted.kind}`);
    expect(it.check(defaulted.cluster).kind).toBe("admitted");
    const later = { ...defaulted.cluster, status: { phase: "x" } };
    expect(it.check(later)).toEqual({ kind: "admitted", cluster: later });
    const bad = { ...later, spec: { ...later.spec, storage: { size: "much" } } };
    expect(it.check(bad).kind).toBe("rejected");
    expect(it.check(later).kind).toBe("admitted");
  });

  it("keeps a verdict until the Cluster is gone", () => {
    const it = guard();
    const defaulted = it.check(aCluster({ storage: { size: "much" } }));
    if (defaulted.kind !== "defaulted") throw new Error(`unexpected verdict ${defaulted.kind}`);
    const verdict = it.check(defaulted.cluster);
    it.forget("uid-of-another");
    expect(it.check(defaulted.cluster)).toBe(verdict);
    it.forget(defaulted.cluster.metadata.uid ?? "");
    expect(it.check(defaulted.cluster)).not.toBe(verdict);
    expect(it.check(defaulted.cluster)).toEqual(verdict);
  });
});
