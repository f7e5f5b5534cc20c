import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import {
  buildFullRecoveryJob,
  buildInitdbJob,
  buildJoinJob,
  buildPgBaseBackupJob,
  buildSnapshotRecoveryJob,
} from "../../../src/build/jobs.ts";
import { buildMajorUpgradeJob } from "../../../src/build/major-upgrade-job.ts";
import { buildPvcs } from "../../../src/build/pvcs.ts";
import { aCluster, context } from "./a-cluster.ts";

const snapshot = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" };

describe("jobs", () => {
  const commandOf = (job: ReturnType<typeof buildJoinJob>) => job.spec?.template.spec?.containers[0]?.command?.slice(2);
  const wal = aCluster({ spec: { walStorage: { size: "1Gi" } } });
  const tail = ["--pg-wal", "/var/lib/postgresql/wal/pg_wal", "--log-level=info"];

  test.each([
    ["join", buildJoinJob(wal, 2, context), ["join", "--parent-node", "db-rw", ...tail]],
    ["pgbasebackup", buildPgBaseBackupJob(wal, 1, context), ["pgbasebackup", ...tail]],
    ["full-recovery", buildFullRecoveryJob(wal, 1, context), ["restore", ...tail]],
    [
      "snapshot-recovery",
      buildSnapshotRecoveryJob(wal, 1, context, { backupLabel: "bGFiZWw=", tablespaceMap: "bWFw" }),
      ["restoresnapshot", "--backuplabel=bGFiZWw=", "--tablespacemap=bWFw", ...tail],
    ],
    [
      "snapshot-recovery",
      buildSnapshotRecoveryJob(wal, 1, context, { immediate: true }),
      ["restoresnapshot", "--immediate", ...tail],
    ],
  ])("%s runs its command", (role, job, command) => {
    expect(commandOf(job)).toEqual(command);
    expect(job.spec?.template.spec?.containers[0]?.name).toBe(role);
    expect(job.metadata.labels?.["cnpg.io/jobRole"]).toBe(role);
    expect(job.spec?.template.spec).toMatchObject({ restartPolicy: "Never", hostname: job.metadata.name });
    expect(job.spec).not.toHaveProperty("backoffLimit");
  });

  const initdb = (section: object) =>
    buildInitdbJob(aCluster({ spec: { bootstrap: { initdb: section } } }), 1, context);

  test("initdb quotes SQL for a shell", () => {
    expect(commandOf(initdb({ postInitSQL: ["SELECT 'a'", "x"], postInitTemplateSQL: ["y"] }))).toEqual([
      "init",
      "--initdb-flags",
      "",
      "--post-init-sql",
      `'SELECT '"'"'a'"'"'' x`,
      "--post-init-template-sql",
      "y",
      "--log-level=info",
    ]);
  });

  test("initdb mounts SQL files in the order of their numbers, and only initdb does", () => {
    const refs = { secretRefs: [{ name: "s", key: "a" }], configMapRefs: Array(9).fill({ name: "c", key: "b" }) };
    const job = initdb({
      postInitSQLRefs: refs,
      postInitTemplateSQLRefs: { configMapRefs: [{ name: "c", key: "b" }] },
    });
    expect(commandOf(job)?.slice(3, 7)).toEqual([
      "--post-init-template-sql-refs-folder",
      "/etc/post-init-template-sql",
      "--post-init-sql-refs-folder",
      "/etc/post-init-sql",
    ]);
    const mounts = job.spec?.template.spec?.containers[0]?.volumeMounts?.filter(({ subPath }) => subPath !== undefined);
    expect(mounts?.map(({ name, mountPath }) => `${name} ${mountPath}`)).toEqual([
      "0-post-init-template-sql /etc/post-init-template-sql/0.sql",
      ...Array.from({ length: 10 }, (_, i) => `0${i}-post-init-sql /etc/post-init-sql/0${i}.sql`),
    ]);
    const cluster = aCluster({ spec: { bootstrap: { initdb: { postInitSQLRefs: refs } } } });
    expect(buildJoinJob(cluster, 2, context).spec?.template.spec?.volumes).toHaveLength(3);
  });

  test("an import waits for no secret and mounts no files", () => {
    const job = initdb({
      database: "a",
      owner: "a",
      postInitSQLRefs: { secretRefs: [{ name: "s", key: "a" }] },
      import: { source: { externalCluster: "o" }, type: "microservice", databases: ["a"] },
    });
    expect(job.metadata.name).toBe("db-1-import");
    expect(commandOf(job)).toEqual([
      "init",
      "--initdb-flags",
      "",
      "--app-db-name",
      "a",
      "--app-user",
      "a",
      "--log-level=info",
    ]);
    expect(job.spec?.template.spec?.containers[0]?.env?.map(({ name }) => name)).not.toContain("APP_USERNAME");
  });

  test.each([
    ["s3", "AWS_CA_BUNDLE"],
    ["azure", "REQUESTS_CA_BUNDLE"],
  ] as const)("a recovery from %s trusts the store's authority by %s", (provider, variable) => {
    const endpointCa = { secretName: "ca", key: "k", provider };
    const container = buildFullRecoveryJob(aCluster(), 1, context, { endpointCa }).spec?.template.spec?.containers[0];
    expect(container?.env?.at(-1)).toEqual({
      name: variable,
      value: "/controller/certificates/restore-barman-ca.crt",
    });
    expect(container?.volumeMounts?.at(-1)).toEqual({
      name: "barman-endpoint-ca",
      mountPath: "/controller/certificates/",
    });
  });
});

describe("volumes", () => {
  test("come from snapshots when they are given", () => {
    const spec: Partial<Cluster["spec"]> = {
      walStorage: { size: "1Gi" },
      tablespaces: [{ name: "a", storage: { size: "1Gi" } }],
    };
    const sources = { data: snapshot, wal: { ...snapshot, name: "w" }, tablespaces: { a: { ...snapshot, name: "t" } } };
    expect(
      buildPvcs(aCluster({ spec }), 1, context, sources).map((pvc) => [pvc.metadata.name, pvc.spec?.dataSource?.name]),
    ).toEqual([
      ["db-1", "s"],
      ["db-1-wal", "w"],
      ["db-1-tbs-a", "t"],
    ]);
  });

  test("without a size cannot be made", () => {
    expect(() => buildPvcs(aCluster({ spec: { storage: {} } }), 1, context)).toThrow(
      "volume db-1 of cluster shop/db has no size: set size or a storage request in the pvcTemplate",
    );
  });
});

describe("a major upgrade", () => {
  const extension = (name: string) => ({ name, image: { reference: `${name}:1` } });
  const status = {
    image: "pg:18",
    pgDataImageInfo: { image: "pg:17", majorVersion: 17, extensions: [extension("old_x")] },
    targetPgDataImageInfo: { image: "pg:18", majorVersion: 18, extensions: [extension("new_x")] },
  };

  test("prepares in the old image and runs in the target one, once", () => {
    const cluster = aCluster({ spec: { walStorage: { size: "1Gi" } }, status });
    const { metadata, spec } = buildMajorUpgradeJob(cluster, 2, context);
    const pod = spec?.template.spec;
    expect(metadata.name).toBe("db-2-major-upgrade");
    expect(spec?.backoffLimit).toBe(0);
    expect(spec?.template.metadata?.labels).toMatchObject({ role: "primary", "cnpg.io/instanceRole": "primary" });
    expect(metadata.labels).not.toHaveProperty("role");
    expect(pod?.initContainers?.map(({ name, image, command }) => [name, image, command?.join(" ")])).toEqual([
      ["bootstrap-controller", context.operatorImageName, "/manager bootstrap /controller/manager --log-level=info"],
      ["prepare", "pg:17", "/controller/manager instance upgrade prepare /controller/old"],
    ]);
    expect(pod?.containers.map(({ name, image, command }) => [name, image, command?.join(" ")])).toEqual([
      [
        "major-upgrade",
        "pg:18",
        "/controller/manager instance upgrade execute /controller/old/bindir.txt --log-level=info",
      ],
    ]);
    expect(pod?.volumes?.slice(-2).map(({ name }) => name)).toEqual(["ext-old-x", "new-new-x"]);
    expect(pod?.containers[0]?.volumeMounts?.at(-1)).toEqual({ name: "new-new-x", mountPath: "/new-extensions/new_x" });
  });

  test("needs both images", () => {
    expect(() => buildMajorUpgradeJob(aCluster(), 1, context)).toThrow(/has no image to upgrade from and to/);
  });
});
