import { describe, expect, it } from "vitest";
import { describeVolumeFailure, parseVolumeFailure } from "../../../src/api/volume-failure.ts";

describe("the answer of an instance whose volumes take no writes", () => {
  it("is read as it was written, and says which they are and since when", () => {
    const failure = describeVolumeFailure(["/data", "/wal"], 12_300);
    expect(parseVolumeFailure(JSON.stringify(failure))).toEqual(failure);
    expect(failure.error.message).toBe(
      "no write to /data or /wal has come back since everything was killed for it 12 s ago",
    );
  });

  it.each([
    ["no JSON", "connection refused"],
    ["no object", "7"],
    ["nothing", "null"],
    ["a status", '{"isPrimary":false}'],
    ["another error", '{"error":{"code":"NOT_FENCED","message":"m"},"folders":["/data"],"silentMs":1}'],
    ["no folder", '{"error":{"code":"VOLUME_SILENT","message":"m"},"folders":[],"silentMs":1}'],
    ["folders that are no texts", '{"error":{"code":"VOLUME_SILENT","message":"m"},"folders":[1],"silentMs":1}'],
    ["no time", '{"error":{"code":"VOLUME_SILENT","message":"m"},"folders":["/data"]}'],
    ["no message", '{"error":{"code":"VOLUME_SILENT"},"folders":["/data"],"silentMs":1}'],
  ])("is not read from %s", (_, body) => {
    expect(parseVolumeFailure(body)).toBeUndefined();
  });
});
