import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareQuantities, parseQuantity } from "../../../src/api/quantity.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { matchesGlob } from "../../../src/build/glob.ts";
import { buildInstancePod } from "../../../src/build/instance-pod.ts";
import { applyMergePatch, createMergePatch } from "../../../src/build/merge-patch.ts";
import { generatePassword } from "../../../src/build/password.ts";
import { comparePodSpecs } from "../../../src/build/pod-spec-diff.ts";
import { sameJson } from "../../../src/build/same-json.ts";
import { planServiceUpdate } from "../../../src/build/service-update.ts";
import { buildManagedService } from "../../../src/build/services.ts";
import { applyDefaults, validateClusterCreate } from "../../../src/schema/admission/index.ts";
import { clusterArbitrary } from "./cluster-arbitrary.ts";

/** Objects without null, which a merge patch cannot carry as a value. */
const plain = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  object: fc.dictionary(fc.constantFrom("a", "b", "c", "d"), tie("value")),
  value: fc.oneof(
    { maxDepth: 3 },
    fc.integer(),
    fc.string(),
    fc.boolean(),
    fc.array(fc.integer(), { maxLength: 3 }),
    tie("object"),
  ),
})).object;

describe("merge patches", () => {
  test("lead from one object to the other", () => {
    fc.assert(
      fc.property(plain, plain, (from, to) => {
        expect(sameJson(applyMergePatch(from, createMergePatch(from, to)), to)).toBe(true);
      }),
    );
  });

  test("are empty exactly when nothing changes", () => {
    fc.assert(
      fc.property(plain, plain, (from, to) => {
        expect(Object.keys(createMergePatch(from, to)).length === 0).toBe(sameJson(from, to));
      }),
    );
  });
});

describe("quantities", () => {
  const units: readonly [string, bigint][] = [
    ["", 1n],
    ["k", 1000n],
    ["M", 1000n ** 2n],
    ["G", 1000n ** 3n],
    ["Ki", 1024n],
    ["Mi", 1024n ** 2n],
    ["Gi", 1024n ** 3n],
  ];
  const quantity = fc.tuple(fc.nat(), fc.constantFrom(...units));

  test("compare by value, whatever their notation", () => {
    fc.assert(
      fc.property(quantity, quantity, ([a, [u, x]], [b, [v, y]]) => {
        const [left, right] = [BigInt(a) * x, BigInt(b) * y];
        expect(compareQuantities(`${a}${u}`, `${b}${v}`)).toBe(left < right ? -1 : left > right ? 1 : 0);
      }),
    );
  });

  test("take thousandths", () => {
    fc.assert(
      fc.property(fc.nat(), (n) => {
        expect(parseQuantity(`${n}m`)).toBe(BigInt(n) * 1_000_000n);
        expect(compareQuantities(`${n}000m`, n)).toBe(0);
      }),
    );
  });
});

test("a key without special characters matches itself alone", () => {
  const key = fc.stringMatching(/^[a-z./-]{1,12}$/);
  fc.assert(
    fc.property(key, key, (pattern, other) => {
      expect(matchesGlob(pattern, pattern)).toBe(true);
      expect(matchesGlob(pattern, other)).toBe(pattern === other);
    }),
  );
});

test("passwords have their form, whatever the bytes", () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.integer({ min: 0, max: 255 })), (stream) => {
      const bytes = () => Uint8Array.of(stream.next().value as number);
      const password = generatePassword({ bytes });
      expect(password).toMatch(/^[A-Za-z0-9]{64}$/);
      expect(password.replace(/\D/g, "")).toHaveLength(10);
    }),
  );
});

describe("clusters", () => {
  const settings = { ...defaultBuildContext, monitoringQueriesConfigMap: "queries", includePlugins: ["extra"] };

  test.each(["preserve", "enforce"] as const)("keep their defaults when these are applied again (%s)", (mode) => {
    fc.assert(
      fc.property(clusterArbitrary, (cluster) => {
        const once = applyDefaults(cluster, { mode, settings });
        expect(applyDefaults(once, { mode, settings })).toEqual(once);
      }),
    );
  });

  test("are validated without a fault of the validator", () => {
    fc.assert(
      fc.property(clusterArbitrary, (cluster) => {
        const defaulted = applyDefaults(cluster, { mode: "preserve", settings });
        const context = { settings, buildPod: () => buildInstancePod(defaulted, 1, settings) };
        for (const issue of validateClusterCreate(defaulted, context)) expect(issue.path).toMatch(/^(spec|metadata)\./);
      }),
    );
  });

  test("give pods whose recorded spec equals what they would get now", () => {
    fc.assert(
      fc.property(clusterArbitrary, (cluster) => {
        const spec = buildInstancePod(applyDefaults(cluster, { mode: "enforce", settings }), 1, settings).spec;
        const stored = JSON.parse(JSON.stringify(spec)) as typeof spec;
        expect(stored && spec && comparePodSpecs(stored, spec)).toBeNull();
      }),
    );
  });

  test("give Services that settle after one update", () => {
    const template = fc.record(
      {
        type: fc.constantFrom("ClusterIP", "NodePort", "LoadBalancer"),
        ports: fc.array(fc.record({ name: fc.constantFrom("a", "b"), port: fc.integer({ min: 1, max: 5 }) }), {
          maxLength: 3,
        }),
        publishNotReadyAddresses: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(clusterArbitrary, template, template, (cluster, before, after) => {
        const build = (spec: typeof before) =>
          buildManagedService(
            cluster,
            { selectorType: "rw", serviceTemplate: { metadata: { name: "x" }, spec: spec as never } },
            settings,
          );
        const live = build(before as never);
        const served = { ...live, spec: { ...live.spec, clusterIP: "10.0.0.1" } };
        const wanted = build(after as never);
        const plan = planServiceUpdate(served, wanted);
        expect(plan.kind).not.toBe("recreate");
        if (plan.kind !== "update") return;
        expect(plan.service.spec).toMatchObject({ clusterIP: "10.0.0.1", selector: wanted.spec?.selector ?? {} });
        expect(planServiceUpdate(plan.service, wanted)).toEqual({ kind: "none" });
      }),
    );
  });
});
