import { expect, test } from "vitest";
import { healthExit } from "../../../src/plugin/barman-cloud/healthcheck.ts";
import { healthRpcs } from "../../../src/rpc/wire/health.ts";

test.each([
  ["", "unknown", 2],
  ["0801", "serving", 0],
  ["0802", "notServing", 3],
  ["0803", "unknown", 2],
] as const)("a health answer of the bytes %j is %s, which ends a probe with %i", (hex, answer, code) => {
  expect(healthRpcs.check.decodeResponse(Buffer.from(hex, "hex"))).toBe(answer);
  expect(healthExit[answer]).toBe(code);
});
