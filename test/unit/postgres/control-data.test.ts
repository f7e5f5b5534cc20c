import { describe, expect, it } from "vitest";
import { parseControlData } from "../../../src/postgres/control-data.ts";
import {
  canLowerOnReplica,
  findDecreases,
  type PendingSetting,
  raiseHotStandbyValues,
} from "../../../src/postgres/hot-standby.ts";
import {
  buildPromotionToken,
  checkPromotionToken,
  parsePromotionToken,
} from "../../../src/postgres/promotion-token.ts";

const text = `pg_control version number:            1700
Catalog version number:               202406281
Database system identifier:           7713748374156333075
Database cluster state:               shut down
pg_control last modified:             Mon Nov 30 00:03:20 2026
Latest checkpoint location:           0/2000028
Latest checkpoint's REDO location:    0/2000028
Latest checkpoint's REDO WAL file:    000000010000000000000002
Latest checkpoint's TimeLineID:       1
Time of latest checkpoint:            Mon Nov 30 00:03:20 2026
Minimum recovery ending location:     0/0
wal_level setting:                    logical
max_connections setting:              120
max_worker_processes setting:         32
max_wal_senders setting:              10
max_prepared_xacts setting:           0
max_locks_per_xact setting:           64
Bytes per WAL segment:                16777216
Data page checksum version:           0
Mock authentication nonce:            5e
`;

describe("pg_controldata", () => {
  it("is read into its values", () => {
    const { fields, ...values } = parseControlData(text);
    expect(values).toEqual({
      systemId: "7713748374156333075",
      state: "shut down",
      checkpointLsn: "0/2000028",
      redoLsn: "0/2000028",
      redoWalFile: "000000010000000000000002",
      timeline: 1,
      checkpointTime: "Mon Nov 30 00:03:20 2026",
      minimumRecoveryLsn: "0/0",
      walLevel: "logical",
      walSegmentBytes: 16_777_216,
      dataChecksums: false,
      controlVersion: 1700,
      catalogVersion: 202_406_281,
      hotStandby: {
        max_connections: 120,
        max_worker_processes: 32,
        max_wal_senders: 10,
        max_prepared_transactions: 0,
        max_locks_per_transaction: 64,
      },
    });
    expect(fields.get("Mock authentication nonce")).toBe("5e");
  });

  it("gives nothing for what is not there", () => {
    const { fields, ...values } = parseControlData("pg_controldata: error: could not open file\n");
    expect(values).toEqual({ hotStandby: {} });
    expect(fields.size).toBe(1);
  });
});

describe("hot-standby settings", () => {
  const control = parseControlData(text);

  it("are raised to what the control file holds", () => {
    expect(raiseHotStandbyValues(new Map([["max_connections", "50"]]), control)).toEqual({
      max_connections: "120",
      max_worker_processes: "32",
    });
    const enough = new Map([
      ["max_connections", "120"],
      ["max_worker_processes", "0x40"],
    ]);
    expect(raiseHotStandbyValues(enough, control)).toEqual({});
    expect(raiseHotStandbyValues(new Map(), parseControlData(""))).toEqual({});
  });

  it("are lowered on a replica only once its control file shows it", () => {
    const pending: PendingSetting[] = [
      { name: "max_connections", running: "200", file: "120" },
      { name: "max_wal_senders", running: "10", file: "20" },
      { name: "shared_buffers", running: "2", file: "1" },
    ];
    expect(findDecreases(pending)).toEqual(["max_connections"]);
    const lowered = pending.slice(0, 1);
    expect(canLowerOnReplica(lowered, control)).toBe(true);
    expect(canLowerOnReplica([{ name: "max_connections", running: "120", file: "100" }], control)).toBe(false);
    expect(canLowerOnReplica(lowered, parseControlData(""))).toBe(false);
  });
});

describe("promotion token", () => {
  const token = parsePromotionToken(buildPromotionToken(parseControlData(text), "1.30.0") ?? "");
  const own = { systemId: "7713748374156333075", timeline: 1, replayedLsn: "0/2000028" };

  it("is read back as it was made", () => {
    expect(token).toEqual({
      latestCheckpointTimelineID: "1",
      redoWalFile: "000000010000000000000002",
      databaseSystemIdentifier: "7713748374156333075",
      latestCheckpointREDOLocation: "0/2000028",
      timeOfLatestCheckpoint: "Mon Nov 30 00:03:20 2026",
      operatorVersion: "1.30.0",
    });
    expect(buildPromotionToken(parseControlData(""), "1.30.0")).toBeUndefined();
  });

  it.each([
    ["%", "Base64 decoding failed"],
    [Buffer.from("{").toString("base64"), "JSON decoding failed"],
    [Buffer.from("null").toString("base64"), "JSON decoding failed"],
    [Buffer.from("{}").toString("base64"), "latestCheckpointTimelineID is empty"],
  ])("%j is refused", (encoded, error) => {
    expect(parsePromotionToken(encoded)).toEqual({ error });
  });

  it.each([
    [{}, "promote"],
    [{ systemId: "1" }, "fatal"],
    [{ timeline: 0 }, "retry"],
    [{ timeline: 2 }, "fatal"],
    [{ replayedLsn: "0/2000000" }, "retry"],
    [{ replayedLsn: "" }, "retry"],
    [{ replayedLsn: "0/3000000" }, "fatal"],
  ])("for an instance with %j says %s", (changes, kind) => {
    if ("error" in token) throw new Error(token.error);
    expect(checkPromotionToken(token, { ...own, ...changes }).kind).toBe(kind);
  });
});
