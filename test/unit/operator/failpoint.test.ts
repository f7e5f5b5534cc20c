import { describe, expect, it } from "vitest";
import { parseFailpoint } from "../../../src/operator/failpoint.ts";

function exitsAfter(text: string | undefined, actions: readonly string[]): number | undefined {
  let at: number | undefined;
  const failpoint = parseFailpoint(text, () => {
    at ??= count;
  });
  let count = 0;
  for (const action of actions) {
    count += 1;
    failpoint(action);
  }
  return at;
}

describe("a failpoint", () => {
  it.each([
    ["createJob:1", ["createPod", "createJob", "createJob"], 2],
    ["createJob:2", ["createJob", "createPod", "createJob"], 3],
    ["createJob:3", ["createJob", "createJob"], undefined],
    ["anyWrite:2", ["event", "patchStatus", "event", "createPod"], 4],
    [undefined, ["createJob"], undefined],
    ["createJob", ["createJob"], undefined],
    ["createJob:0", ["createJob"], undefined],
  ])("%s after %j ends the process at %s", (text, actions, expected) => {
    expect(exitsAfter(text, actions)).toBe(expected);
  });
});
