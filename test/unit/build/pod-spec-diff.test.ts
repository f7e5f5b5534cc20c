import { describe, expect, test } from "vitest";
import type { Container, PodSpec } from "../../../src/api/generated/kubernetes.ts";
import { buildInstancePod, parseRecordedPodSpec, recordPodSpec } from "../../../src/build/instance-pod.ts";
import { comparePodSpecs } from "../../../src/build/pod-spec-diff.ts";
import { aCluster, aContext, type ClusterParts, context } from "./a-cluster.ts";

const full: ClusterParts = {
  spec: {
    walStorage: { size: "1Gi" },
    tablespaces: [{ name: "hot_data", storage: { size: "1Gi" } }],
    projectedVolumeTemplate: { sources: [] },
    ephemeralVolumesSizeLimit: { shm: "1Gi" },
    resources: { requests: { cpu: "500m", memory: "1Gi" } },
  },
  status: {
    pgDataImageInfo: { image: "i", majorVersion: 17, extensions: [{ name: "pg_x", image: { reference: "x" } }] },
  },
};
const specOf = (parts: ClusterParts): PodSpec => buildInstancePod(aCluster(parts), 1, context).spec as PodSpec;
const target = specOf(full);

/** The target with a change to a copy of it. */
function stored(change: (spec: PodSpec & { containers: [Container] }) => void): PodSpec {
  const copy = structuredClone(target) as PodSpec & { containers: [Container] };
  change(copy);
  return copy;
}

const first = (spec: PodSpec): Container => spec.containers[0] as Container;

test("a pod equals itself through its annotation", () => {
  const pod = recordPodSpec(buildInstancePod(aCluster(full), 1, context));
  const recorded = parseRecordedPodSpec(pod);
  expect(recorded && comparePodSpecs(recorded, target)).toBeNull();
});

test.each([undefined, "", "{", "null", "{}", "[]"])("an annotation that says %j is not a spec", (text) => {
  const pod = buildInstancePod(aCluster(), 1, context);
  const annotations: Record<string, string> = text === undefined ? {} : { "cnpg.io/podSpec": text };
  expect(parseRecordedPodSpec({ ...pod, metadata: { ...pod.metadata, annotations } })).toBeUndefined();
});

describe("what means the same is equal", () => {
  test.each<[string, (spec: PodSpec & { containers: [Container] }) => void]>([
    [
      "another notation of quantities",
      (spec) => {
        first(spec).resources = { requests: { memory: "1024Mi", cpu: "0.5" } };
      },
    ],
    [
      "another notation of size limits",
      (spec) => {
        for (const volume of spec.volumes ?? [])
          if (volume.name === "shm") volume.emptyDir = { medium: "Memory", sizeLimit: "1024Mi" };
      },
    ],
    [
      "an explicit default mode",
      (spec) => {
        for (const volume of spec.volumes ?? []) if (volume.projected) volume.projected.defaultMode = 420;
      },
    ],
    ["empty lists", (spec) => void Object.assign(spec, { tolerations: [], topologySpreadConstraints: null })],
    [
      "volume names without a prefix",
      (spec) => {
        for (const volume of [...(spec.volumes ?? []), ...(first(spec).volumeMounts ?? [])])
          volume.name = volume.name.replace(/^(tbs|ext)-/, "");
      },
    ],
    [
      "an image mounted read-only",
      (spec) => {
        for (const mount of first(spec).volumeMounts ?? []) if (mount.name.startsWith("ext-")) mount.readOnly = true;
      },
    ],
    [
      "another bootstrap image",
      (spec) => {
        (spec.initContainers?.[0] as Container).image = "older";
      },
    ],
  ])("%s", (_case, change) => {
    expect(comparePodSpecs(stored(change), target)).toBeNull();
  });
});

describe("each difference is named", () => {
  const differs = (text: string) => `original and target PodSpec differ in ${text}`;
  const inPostgres = (text: string) => differs(`containers: container postgres differs in ${text}`);
  test.each<[string, (spec: PodSpec & { containers: [Container] }) => void]>([
    [
      differs("volumes: element pg-wal has been added"),
      (spec) => {
        spec.volumes = spec.volumes?.filter(({ name }) => name !== "pg-wal") ?? [];
      },
    ],
    [
      differs("volumes: element extra has been removed"),
      (spec) => void spec.volumes?.push({ name: "extra", emptyDir: {} }),
    ],
    [
      differs("volumes: element pgdata has differing value"),
      (spec) => {
        (spec.volumes?.[0] as { persistentVolumeClaim: object }).persistentVolumeClaim = { claimName: "x" };
      },
    ],
    [
      differs("containers: container sidecar has been removed"),
      (spec) => {
        (spec.containers as Container[]).push({ name: "sidecar" });
      },
    ],
    [
      differs("containers: container postgres has been added"),
      (spec) => {
        (spec as PodSpec).containers = [];
      },
    ],
    [
      differs("init-containers: container wait has been removed"),
      (spec) => void spec.initContainers?.push({ name: "wait" }),
    ],
    [
      inPostgres("image"),
      (spec) => {
        first(spec).image = "other";
      },
    ],
    [
      inPostgres("environment: element PGDATA has differing value"),
      (spec) => {
        first(spec).env =
          first(spec).env?.map((entry) => (entry.name === "PGDATA" ? { ...entry, value: "/x" } : entry)) ?? [];
      },
    ],
    [
      inPostgres("environment: element envFrom has differing value"),
      (spec) => {
        first(spec).envFrom = [{ configMapRef: { name: "x" } }];
      },
    ],
    [
      inPostgres("readiness-probe"),
      (spec) => {
        first(spec).readinessProbe = { periodSeconds: 1 };
      },
    ],
    [
      inPostgres("liveness-probe"),
      (spec) => {
        first(spec).livenessProbe = { periodSeconds: 1 };
      },
    ],
    [
      inPostgres("startup-probe"),
      (spec) => {
        first(spec).startupProbe = { periodSeconds: 1 };
      },
    ],
    [
      inPostgres("command"),
      (spec) => {
        first(spec).command = ["x"];
      },
    ],
    [
      inPostgres("args"),
      (spec) => {
        first(spec).args = ["x"];
      },
    ],
    [
      inPostgres("resources"),
      (spec) => {
        first(spec).resources = { requests: { cpu: "501m", memory: "1Gi" } };
      },
    ],
    [inPostgres("ports: element status has been added"), (spec) => void first(spec).ports?.pop()],
    [
      inPostgres("security-context"),
      (spec) => {
        first(spec).securityContext = {};
      },
    ],
    [
      inPostgres("volume-mounts: element /controller has been added"),
      (spec) => void first(spec).volumeMounts?.splice(2, 1),
    ],
    [
      differs("security-context"),
      (spec) => {
        spec.securityContext = {};
      },
    ],
    [
      differs("affinity"),
      (spec) => {
        spec.affinity = {};
      },
    ],
    [
      differs("tolerations"),
      (spec) => {
        spec.tolerations = [{ operator: "Exists" }];
      },
    ],
    [
      differs("node-selector"),
      (spec) => {
        spec.nodeSelector = { a: "b" };
      },
    ],
    [
      differs("topology-spread-constraints"),
      (spec) => {
        spec.topologySpreadConstraints = [{ maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule" }];
      },
    ],
    [
      differs("service-account-name"),
      (spec) => {
        spec.serviceAccountName = "x";
      },
    ],
    [
      differs("scheduler-name"),
      (spec) => {
        spec.schedulerName = "x";
      },
    ],
    [
      differs("hostname"),
      (spec) => {
        spec.hostname = "x";
      },
    ],
    [
      differs("termination-grace-period"),
      (spec) => {
        spec.terminationGracePeriodSeconds = 1;
      },
    ],
    [
      differs("priority-class-name"),
      (spec) => {
        spec.priorityClassName = "x";
      },
    ],
    [
      differs("subdomain"),
      (spec) => {
        spec.subdomain = "x";
      },
    ],
  ])("%s", (text, change) => {
    expect(comparePodSpecs(stored(change), target)).toBe(text);
  });
});

describe("a pod", () => {
  test("has no pod security context where constraints choose it", () => {
    const pod = buildInstancePod(aCluster(), 1, aContext({ securityContextConstraints: true }));
    expect(pod.spec).not.toHaveProperty("securityContext");
    expect(pod.spec?.containers[0]?.securityContext).toMatchObject({ privileged: false });
  });

  test.each([
    [{}, 360],
    [{ startDelay: 95 }, 10],
    [{ startDelay: 5 }, 1],
    [{ startDelay: 95, probes: { startup: { periodSeconds: 30 } } }, 4],
    [{ startDelay: 95, probes: { startup: { failureThreshold: 2 } } }, 2],
  ])("with %j is given %i tries to start", (spec, threshold) => {
    expect(first(specOf({ spec })).startupProbe?.failureThreshold).toBe(threshold);
  });

  test.each([
    [{}, undefined],
    [{ livenessProbeTimeout: 30 }, 3],
    [{ livenessProbeTimeout: 31 }, 4],
    [{ livenessProbeTimeout: 31, probes: { liveness: { failureThreshold: 9 } } }, 9],
  ])("with %j may fail %s liveness probes", (spec, threshold) => {
    expect(first(specOf({ spec })).livenessProbe?.failureThreshold).toBe(threshold);
  });

  test.each([
    ["no anti-affinity", { enablePodAntiAffinity: false }],
    ["a type of the user's own", { podAntiAffinityType: "custom" }],
  ])("with %s has none", (_case, affinity) => {
    expect(specOf({ spec: { affinity } })).not.toHaveProperty("affinity");
  });

  test("keeps a user's terms when ours are off", () => {
    const additionalPodAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "z" }] };
    const affinity = { enablePodAntiAffinity: false, additionalPodAntiAffinity };
    expect(specOf({ spec: { affinity } }).affinity).toEqual({ podAntiAffinity: additionalPodAntiAffinity });
  });

  test.each([
    ["is not JSON", "{", /annotation cnpg\.io\/podPatch of cluster shop\/db is not JSON/],
    ["is no list", "{}", /is not a list/],
    ["does not fit", '[{"op":"remove","path":"/spec/none"}]', /does not apply to pod db-1/],
  ])("cannot be made when its patch %s", (_case, text, error) => {
    expect(() => buildInstancePod(aCluster({ annotations: { "cnpg.io/podPatch": text } }), 1, context)).toThrow(error);
  });

  test("prefers inherited labels to the common ones, never to the operator's own", () => {
    const labels = { "app.kubernetes.io/component": "ledger", "cnpg.io/podRole": "pooler" };
    const pod = buildInstancePod(aCluster({ spec: { inheritedMetadata: { labels } } }), 1, context);
    expect(pod.metadata.labels).toMatchObject({
      "app.kubernetes.io/component": "ledger",
      "cnpg.io/podRole": "instance",
    });
  });
});

test("what CloudNativePG does not compare is no difference to a pod of its own", () => {
  const before = stored((spec) => {
    first(spec).args = ["x"];
    spec.priorityClassName = "high";
    spec.subdomain = "any";
    (spec.initContainers as Container[]).push({ name: "sidecar", args: ["instance"] });
  });
  const after = structuredClone(target);
  (after.initContainers as Container[]).push({ name: "sidecar", args: ["instance", "--log-level=debug"] });
  expect(comparePodSpecs(before, after, { compatible: true })).toBeNull();
  expect(comparePodSpecs(before, after)).toContain("differs in args");
});
