import { describe, expect, it } from "vitest";
import { findPluginError, PluginError } from "../../../src/ports/plugin.ts";
import { classifyStatus, statusCodes, statusName } from "../../../src/rpc/status.ts";

describe("gRPC statuses", () => {
  it.each([
    ["CANCELLED", "unavailable"],
    ["UNKNOWN", "unavailable"],
    ["INVALID_ARGUMENT", "refused"],
    ["DEADLINE_EXCEEDED", "unavailable"],
    ["NOT_FOUND", "notFound"],
    ["ALREADY_EXISTS", "refused"],
    ["PERMISSION_DENIED", "refused"],
    ["RESOURCE_EXHAUSTED", "unavailable"],
    ["FAILED_PRECONDITION", "refused"],
    ["ABORTED", "unavailable"],
    ["OUT_OF_RANGE", "notFound"],
    ["UNIMPLEMENTED", "refused"],
    ["INTERNAL", "unavailable"],
    ["UNAVAILABLE", "unavailable"],
    ["DATA_LOSS", "refused"],
    ["UNAUTHENTICATED", "refused"],
  ] as const)("%s is %s", (name, kind) => {
    expect(classifyStatus(statusCodes[name])).toBe(kind);
    expect(statusName(statusCodes[name])).toBe(name);
  });

  it("a message over the limit will not get smaller", () => {
    const [node, go] = [
      "Received message larger than max (5 vs. 4)",
      "grpc: received message larger than max (5 vs. 4)",
    ];
    expect(classifyStatus(statusCodes.RESOURCE_EXHAUSTED, node)).toBe("refused");
    expect(classifyStatus(statusCodes.RESOURCE_EXHAUSTED, go)).toBe("refused");
  });

  it("a number from another list says nothing", () => {
    expect(statusName(99)).toBe("UNKNOWN");
    expect(classifyStatus(99)).toBe("unavailable");
  });
});

describe("a plugin error", () => {
  const error = new PluginError("m", { plugin: "p", operation: "WAL.Restore", kind: "notFound" });

  it("is found behind other errors", () => {
    const outer = new Error("outer", { cause: new Error("inner", { cause: error }) });
    expect(findPluginError(outer)).toBe(error);
    expect(findPluginError(outer, "unavailable")).toBeUndefined();
    expect(findPluginError(new Error("other"))).toBeUndefined();
    expect(findPluginError("text")).toBeUndefined();
  });

  it("says whether another attempt may help", () => {
    const retryable = (kind: PluginError["kind"]) =>
      new PluginError("m", { plugin: "p", operation: "o", kind }).retryable;
    expect(retryable("unavailable")).toBe(true);
    expect(retryable("unknownPlugin")).toBe(true);
    expect(retryable("notFound")).toBe(false);
    expect(retryable("refused")).toBe(false);
    expect(retryable("protocol")).toBe(false);
  });
});
