import { describe, expect, test } from "vitest";
import { BaseError } from "../../../../src/archive/base/base-error.ts";
import type { BaseBackupDeps, BaseBackupRequest, BaseRestoreRequest } from "../../../../src/archive/base/types.ts";
import type { StoreConfiguration } from "../../../../src/barman/store-configuration.ts";
import { type BaseEngineDeps, createBaseEngine } from "../../../../src/plugin/barman-cloud/base-engine.ts";
import type { StoreAccess, StoreFacts } from "../../../../src/plugin/barman-cloud/store-access.ts";
import type { Files } from "../../../../src/ports/files.ts";
import { type ObjectStore, ObjectStoreError } from "../../../../src/ports/object-store.ts";
import type { SqlTarget } from "../../../../src/ports/sql-session.ts";
import { aBackup } from "../../../support/backup-catalog.ts";

const { id, info } = aBackup("20260101T000000");
const store = {} as ObjectStore;

function factsOf(configuration: Partial<StoreConfiguration> = {}): StoreFacts {
  return {
    configuration: { destinationPath: "s3://bucket/p", ...configuration },
    connection: { destination: { path: "p" } },
    serverName: "orders",
  } as StoreFacts;
}

function setUp(changes: Partial<BaseEngineDeps> = {}) {
  const requests: (BaseBackupRequest | BaseRestoreRequest)[] = [];
  const targets: SqlTarget[] = [];
  const statements: string[] = [];
  const forgotten: StoreFacts[] = [];
  let ports: BaseBackupDeps | undefined;
  const engine = createBaseEngine({
    access: { forget: (facts: StoreFacts) => void forgotten.push(facts) } as StoreAccess,
    files: { read: async (path: string) => `text of ${path}` } as Files,
    sql: {
      async connect(target: SqlTarget) {
        targets.push(target);
        return { query: async (text: string) => void statements.push(text), close: async () => undefined };
      },
    },
    environment: { socketHost: "/controller/run", port: 5433, namespace: "shop", clusterName: "orders" },
    takeBaseBackup: async (deps: BaseBackupDeps, request: BaseBackupRequest) => {
      ports = deps;
      requests.push(request);
      return { backupId: id, info };
    },
    restoreBaseBackup: async (_deps: unknown, request: BaseRestoreRequest) => void requests.push(request),
    signal: new AbortController().signal,
    ...changes,
  } as unknown as BaseEngineDeps);
  return { engine, requests, targets, statements, forgotten, ports: () => ports };
}

describe("a base backup of an instance", () => {
  test("gets what the ObjectStore says about it, by fields before additional arguments", async () => {
    const { engine, requests } = setUp();
    const data = {
      compression: "bzip2" as const,
      immediateCheckpoint: true,
      jobs: 3,
      additionalCommandArgs: ["--jobs=8", "--min-chunk-size=10MB", "--max-bandwidth", "1GB", "-S", "2GB"],
    };
    const facts = factsOf({ data, tags: { team: "a" } });
    expect(await engine.takeBackup("backup-20260101000000", facts, store)).toEqual({ id, info });
    expect(requests).toEqual([
      expect.objectContaining({
        path: "p",
        serverName: "orders",
        backupName: "backup-20260101000000",
        compression: "bzip2",
        immediateCheckpoint: true,
        jobs: 3,
        tags: { team: "a" },
        minPartBytes: 10 << 20,
        maxBandwidthBytes: 1 << 30,
        maxArchiveBytes: 2 ** 31,
      }),
    ]);
  });

  test("speaks to its own server by the socket, and to the primary as standbys do", async () => {
    const { engine, ports, targets, statements } = setUp();
    await engine.takeBackup("backup-20260101000000", factsOf(), store);
    await ports()?.connect();
    await ports()?.switchPrimaryWal?.(new AbortController().signal);
    expect(targets).toMatchObject([
      { host: "/controller/run", port: 5433, user: "postgres", database: "postgres" },
      {
        host: "orders-rw.shop.svc",
        user: "streaming_replica",
        tls: {
          ca: "text of /controller/certificates/server-ca.crt",
          cert: "text of /controller/certificates/streaming_replica.crt",
          key: "text of /controller/certificates/streaming_replica.key",
        },
      },
    ]);
    expect(statements).toEqual(["SELECT pg_switch_wal()"]);
  });

  test.each([
    ["walMissing" as const, "UNAVAILABLE"],
    ["damaged" as const, "DATA_LOSS"],
    ["notFound" as const, "NOT_FOUND"],
    ["cancelled" as const, "CANCELLED"],
    ["invalid" as const, "FAILED_PRECONDITION"],
  ])("a failure of kind %s is answered by %s", async (kind, status) => {
    const { engine } = setUp({ takeBaseBackup: () => Promise.reject(new BaseError(kind, "why")) });
    await expect(engine.takeBackup("b", factsOf(), store)).rejects.toMatchObject({ status, message: "why" });
  });

  test("refused credentials are read anew for the next one", async () => {
    const denied = new ObjectStoreError("403", { kind: "denied", operation: "PUT", key: "k" });
    const { engine, forgotten } = setUp({
      takeBaseBackup: () => Promise.reject(BaseError.from("cannot take base backup b", denied)),
    });
    const facts = factsOf();
    await expect(engine.takeBackup("b", facts, store)).rejects.toMatchObject({ status: "UNAVAILABLE" });
    expect(forgotten).toEqual([facts]);
  });
});

test("a base restore goes into the data folder, with the jobs that the ObjectStore asks for", async () => {
  const { engine, requests } = setUp();
  const facts = factsOf({ data: { restoreAdditionalCommandArgs: ["--jobs", "6"] } });
  await engine.restoreBackup({ id, info, keep: undefined }, facts, store, { pgData: "/pgdata", walFolder: undefined });
  expect(requests).toEqual([
    expect.objectContaining({ backupId: id, dataFolder: "/pgdata", serverName: "orders", jobs: 6 }),
  ]);
});
