import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { BackupResultSchema } from "../../../src/rpc/gen/backup_pb.ts";
import { GetPluginCapabilitiesResponseSchema, PluginCapabilitySchema } from "../../../src/rpc/gen/identity_pb.ts";
import { MetricSchema } from "../../../src/rpc/gen/metrics_pb.ts";
import { OperatorCapabilitiesResultSchema, ValidationErrorSchema } from "../../../src/rpc/gen/operator_pb.ts";
import { WALStatusResultSchema } from "../../../src/rpc/gen/wal_pb.ts";
import { backupRpcs } from "../../../src/rpc/wire/backup.ts";
import { identityRpcs } from "../../../src/rpc/wire/identity.ts";
import { lifecycleRpcs } from "../../../src/rpc/wire/lifecycle.ts";
import { metricsRpcs } from "../../../src/rpc/wire/metrics.ts";
import { operatorRpcs } from "../../../src/rpc/wire/operator.ts";
import { postgresRpcs } from "../../../src/rpc/wire/postgres.ts";
import { reconcilerRpcs } from "../../../src/rpc/wire/reconciler.ts";
import { restoreJobRpcs } from "../../../src/rpc/wire/restore-job.ts";
import { walRpcs } from "../../../src/rpc/wire/wal.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));
/** The text `{}` as a client gives it, and the object that a server makes of it. */
const text = bytes("7b7d");
const empty = {};

describe("golden vectors of the protocol, produced by Go", () => {
  it.each<[string, Uint8Array, string]>([
    [
      "GetPluginCapabilitiesResponse",
      identityRpcs.getPluginCapabilities.encodeResponse(["TYPE_WAL_SERVICE", "TYPE_METRICS"]),
      "0a040a0208020a040a02080a",
    ],
    ["ProbeResponse", identityRpcs.probe.encodeResponse(true), "0801"],
    ["WALCapabilitiesResult", walRpcs.getCapabilities.encodeResponse(["TYPE_ARCHIVE_WAL"]), "0a040a020801"],
    [
      "OperatorCapabilitiesResult",
      operatorRpcs.getCapabilities.encodeResponse(["TYPE_SET_STATUS_IN_CLUSTER"]),
      "0a040a020805",
    ],
    [
      "WALArchiveRequest that says false",
      walRpcs.archive.encodeRequest({ cluster: text, sourceFileName: "/p/1", checkEmptyWalArchive: false }),
      "0a027b7d12042f702f312000",
    ],
    [
      "WALArchiveRequest with parameters",
      walRpcs.archive.encodeRequest({
        cluster: text,
        sourceFileName: "/p/1",
        parameters: { a: "b" },
        checkEmptyWalArchive: true,
      }),
      "0a027b7d12042f702f311a060a01611201622001",
    ],
    [
      "WALRestoreRequest",
      walRpcs.restore.encodeRequest({
        cluster: text,
        sourceWalName: "W",
        destinationFileName: "/d",
        mode: "rewind",
      }),
      "0a027b7d1201571a022f642802",
    ],
    [
      "WALStatusResult",
      walRpcs.status.encodeResponse({ firstWal: "A", lastWal: "B", additionalInformation: { k: "v" } }),
      "0a014112014222060a016b120176",
    ],
    [
      "RestoreRequest",
      restoreJobRpcs.restore.encodeRequest({ cluster: text, checkEmptyWalArchive: false }),
      "0a027b7d1000",
    ],
    [
      "RestoreResponse",
      restoreJobRpcs.restore.encodeResponse({ restoreConfig: "x", envs: ["A=B"] }),
      "0a01781203413d42",
    ],
    [
      "OperatorLifecycleRequest",
      lifecycleRpcs.hook.encodeRequest({ operation: "evaluate", cluster: text, object: text }),
      "0a02080612027b7d1a027b7d",
    ],
    [
      "OperatorLifecycleCapabilitiesResponse",
      lifecycleRpcs.getCapabilities.encodeResponse([{ group: "", kind: "Pod", operations: ["create", "evaluate"] }]),
      "0a0d1203506f641a0208031a020806",
    ],
    [
      "ReconcilerHooksResult",
      reconcilerRpcs.pre.encodeResponse({ behavior: "requeue", requeueAfterSeconds: 5 }),
      "08021005",
    ],
    [
      "ReconcilerHooksRequest",
      reconcilerRpcs.post.encodeRequest({ cluster: text, resource: text }),
      "0a027b7d12027b7d",
    ],
    [
      "BackupResult",
      backupRpcs.backup.encodeResponse({
        backupId: "i",
        backupName: "n",
        startedAt: 1_000,
        stoppedAt: 300_000,
        beginWal: "",
        endWal: "",
        beginLsn: "",
        endLsn: "",
        backupLabelFile: new Uint8Array(),
        tablespaceMapFile: new Uint8Array(),
        instanceId: "",
        online: true,
        metadata: { k: "v" },
      }),
      "0a016912016e180120ac0260016a060a016b120176",
    ],
    [
      "EnrichConfigurationRequest",
      postgresRpcs.enrichConfiguration.encodeRequest({ configs: { a: "b" }, cluster: text, operation: "reconcile" }),
      "0a060a016112016212027b7d1a020803",
    ],
  ])("%s is encoded alike", (_, encoded, expected) => {
    expect(hex(encoded)).toBe(expected);
  });

  it.each<[string, unknown, unknown]>([
    [
      "GetPluginCapabilitiesResponse",
      identityRpcs.getPluginCapabilities.decodeResponse(bytes("0a040a0208020a040a02080a")),
      ["TYPE_WAL_SERVICE", "TYPE_METRICS"],
    ],
    [
      "PluginCapability of type 0",
      identityRpcs.getPluginCapabilities.decodeResponse(bytes("0a020a00")),
      ["TYPE_UNSPECIFIED"],
    ],
    ["ProbeResponse", identityRpcs.probe.decodeResponse(bytes("0801")), true],
    ["an empty ProbeResponse", identityRpcs.probe.decodeResponse(bytes("")), false],
    [
      "WALArchiveRequest that says false",
      walRpcs.archive.decodeRequest(bytes("0a027b7d12042f702f312000")),
      { cluster: empty, sourceFileName: "/p/1", parameters: {}, checkEmptyWalArchive: false },
    ],
    [
      "WALArchiveRequest that says true",
      walRpcs.archive.decodeRequest(bytes("0a027b7d12042f702f311a060a01611201622001")),
      { cluster: empty, sourceFileName: "/p/1", parameters: { a: "b" }, checkEmptyWalArchive: true },
    ],
    [
      "WALArchiveRequest that says nothing",
      walRpcs.archive.decodeRequest(bytes("0a027b7d12042f702f31")),
      { cluster: empty, sourceFileName: "/p/1", parameters: {} },
    ],
    [
      "WALRestoreRequest",
      walRpcs.restore.decodeRequest(bytes("0a027b7d1201571a022f642802")),
      { cluster: empty, sourceWalName: "W", destinationFileName: "/d", parameters: {}, mode: "rewind" },
    ],
    [
      "WALRestoreRequest of an old client",
      walRpcs.restore.decodeRequest(bytes("0a027b7d1201571a022f64")),
      { cluster: empty, sourceWalName: "W", destinationFileName: "/d", parameters: {}, mode: "recovery" },
    ],
    [
      "RestoreRequest",
      restoreJobRpcs.restore.decodeRequest(bytes("0a027b7d1000")),
      { cluster: empty, checkEmptyWalArchive: false },
    ],
    [
      "OperatorLifecycleRequest that does not say the operation",
      lifecycleRpcs.hook.decodeRequest(bytes("12027b7d1a027b7d")),
      { operation: "unknown", cluster: {}, object: {} },
    ],
    [
      "OperatorLifecycleRequest",
      lifecycleRpcs.hook.decodeRequest(bytes("0a02080612027b7d1a027b7d")),
      { operation: "evaluate", cluster: empty, object: empty },
    ],
    [
      "ReconcilerHooksResult",
      reconcilerRpcs.pre.decodeResponse(bytes("08021005")),
      { behavior: "requeue", requeueAfterSeconds: 5 },
    ],
    [
      "CollectMetricsResult",
      metricsRpcs.collect.decodeResponse(bytes("0a0f09000000000000f83f12016d1a0178")),
      [{ name: "m", value: 1.5, variableLabels: ["x"] }],
    ],
  ])("%s is decoded alike", (_, decoded, expected) => {
    expect(decoded).toEqual(expected);
  });

  it("messages inside of others", () => {
    both(PluginCapabilitySchema, { type: { case: "service", value: {} } }, "0a00");
    both(
      MetricSchema,
      { fqName: "m", help: "h", variableLabels: ["l"], constLabels: { c: "d" }, valueType: { type: 2 } },
      "0a016d1201681a016c22060a01631201642a020802",
    );
    both(
      ValidationErrorSchema,
      { pathComponents: ["spec", "plugins"], value: "v", message: "m" },
      "0a04737065630a07706c7567696e731201761a016d",
    );
    expect(hex(metricsRpcs.collect.encodeResponse([{ name: "m", value: 1.5, variableLabels: ["x"] }]))).toBe(
      "0a0f09000000000000f83f12016d1a0178",
    );
  });

  it("skips the numbers that the protocol skips", () => {
    const numbers = (schema: DescMessage) => schema.fields.map(({ number }) => number);
    expect(numbers(WALStatusResultSchema)).toEqual([1, 2, 4]);
    expect(numbers(BackupResultSchema)).toHaveLength(13);
    expect(numbers(OperatorCapabilitiesResultSchema)).toEqual([1]);
    expect(numbers(GetPluginCapabilitiesResponseSchema)).toEqual([1]);
  });
});

function both<T extends DescMessage>(schema: T, value: MessageInitShape<T>, expected: string): void {
  const message = create(schema, value);
  expect(hex(toBinary(schema, message))).toBe(expected);
  expect(fromBinary(schema, bytes(expected))).toEqual(message);
}
