import fc from "fast-check";
import type { Cluster } from "../../../src/api/generated/cluster.ts";

const size = fc.constantFrom("1Gi", "500Mi", "2G", "0", "big");
const storage = fc.record({ size, storageClass: fc.constantFrom("a", "b") }, { requiredKeys: [] });
const name = fc.constantFrom("a", "b_c", "B$c", "pg_x", "");

const spec = fc.record(
  {
    instances: fc.integer({ min: 1, max: 5 }),
    imageName: fc.constantFrom("pg:17.6", "pg:18", "pg", "pg@sha256:0", "pg:latest"),
    storage,
    walStorage: storage,
    tablespaces: fc.array(fc.record({ name, storage }), { maxLength: 3 }),
    enableSuperuserAccess: fc.boolean(),
    startDelay: fc.integer({ min: 0, max: 4000 }),
    stopDelay: fc.integer({ min: 0, max: 4000 }),
    livenessProbeTimeout: fc.integer({ min: 0, max: 100 }),
    minSyncReplicas: fc.integer({ min: -1, max: 3 }),
    maxSyncReplicas: fc.integer({ min: -1, max: 3 }),
    env: fc.array(fc.record({ name: fc.constantFrom("A", "PGX", "b"), value: fc.string() }), { maxLength: 3 }),
    resources: fc.record(
      {
        requests: fc.dictionary(
          fc.constantFrom("cpu", "memory", "hugepages-2Mi"),
          fc.constantFrom("1", "512Mi", "1500m"),
        ),
        limits: fc.dictionary(
          fc.constantFrom("cpu", "memory", "hugepages-2Mi"),
          fc.constantFrom("1", "512Mi", "1500m"),
        ),
      },
      { requiredKeys: [] },
    ),
    bootstrap: fc.constantFrom(
      {},
      { initdb: { database: "x" } },
      { initdb: { owner: "y" } },
      { recovery: { source: "o" } },
      { pg_basebackup: { source: "o" } },
      { initdb: {}, recovery: {} },
    ),
    replica: fc.constantFrom({ enabled: true, source: "o" }, { primary: "db", source: "o" }, { source: "o" }),
    postgresql: fc.record(
      {
        parameters: fc.dictionary(
          fc.constantFrom("work_mem", "port", "wal_level", "shared_buffers", "min_wal_size", "a.b.c", "archive_mode"),
          fc.constantFrom("8MB", "minimal", "off", "5432", "many"),
        ),
        pg_hba: fc.array(fc.constantFrom("local all all peer", `host all all \${podselector:x} md5`), { maxLength: 2 }),
      },
      { requiredKeys: [] },
    ),
    projectedVolumeTemplate: fc.constantFrom({ sources: [] }, { defaultMode: 420 }, { defaultMode: 288 }),
    affinity: fc.record(
      {
        enablePodAntiAffinity: fc.boolean(),
        podAntiAffinityType: fc.constantFrom("preferred", "required", "x"),
        tolerations: fc.array(
          fc.record({ key: fc.constantFrom("k", "bad key"), operator: fc.constantFrom("Exists", "Equal", "x") }),
          { maxLength: 2 },
        ),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ["instances"] },
);

/** Clusters of many shapes, right and wrong ones. */
export const clusterArbitrary: fc.Arbitrary<Cluster> = fc.record({
  apiVersion: fc.constant("postgresql.cnpg.io/v1" as const),
  kind: fc.constant("Cluster" as const),
  metadata: fc.record({
    name: fc.constantFrom("db", "other", "1bad"),
    namespace: fc.constant("shop"),
    uid: fc.constant("u"),
    annotations: fc.dictionary(
      fc.constantFrom("cnpg.io/hibernation", "alpha.cnpg.io/failoverQuorum", "alpha.cnpg.io/livenessPinger"),
      fc.constantFrom("on", "true", "{", '{"enabled":true}'),
    ),
  }),
  spec: spec as fc.Arbitrary<Cluster["spec"]>,
});
