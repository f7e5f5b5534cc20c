import { describe, expect, it } from "vitest";
import { readExecStatus } from "../../../src/kube/exec-status.ts";

const failure = (body: object) => JSON.stringify({ status: "Failure", ...body });

describe("the last message of a session", () => {
  it("tells that the program succeeded", () => {
    expect(readExecStatus('{"metadata":{},"status":"Success"}')).toBe(0);
  });

  it("tells with which code the program failed", () => {
    const details = { causes: [{ reason: "ExitCode", message: "7" }] };
    expect(readExecStatus(failure({ reason: "NonZeroExitCode", details }))).toBe(7);
  });

  it.each([
    [failure({ message: 'container not found ("postgres")', reason: "NotFound" }), "container not found"],
    [failure({ reason: "InternalError" }), "InternalError"],
    [failure({ reason: "NonZeroExitCode", message: "no code", details: { causes: [] } }), "no code"],
    ["error dialing backend", "error dialing backend"],
  ])("is no exit code when the program was not run: %s", (text, why) => {
    expect(() => readExecStatus(text)).toThrow(why);
  });
});
