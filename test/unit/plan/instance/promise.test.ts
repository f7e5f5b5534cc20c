import { describe, expect, test } from "vitest";
import {
  binds,
  grantOf,
  isGranted,
  type PromiseRequest,
  parsePromiseRequest,
  planPromise,
  type VoterView,
} from "../../../../src/plan/instance/promise.ts";

const request: PromiseRequest = {
  cluster: "ns/c",
  voter: "c-2",
  holder: "c-1",
  holderUID: "u1",
  transitions: 4,
  durationMs: 15_000,
  nonce: "n",
};
const record = {
  holder: "c-1",
  renewTime: "t",
  transitions: 4,
  durationSeconds: 15,
  voters: { voters: ["c-1", "c-2"], holderUID: "u1" },
};
const voter: VoterView = {
  cluster: "ns/c",
  me: "c-2",
  record,
  claiming: false,
  isHolder: false,
  grant: undefined,
};
const grant = { holder: "c-1", holderUID: "u1", transitions: 4, until: 20_000 };

describe("a voter", () => {
  test.each<[string, Partial<VoterView>]>([
    ["that sees the holder's own record", {}],
    ["that never saw the Lease", { record: undefined }],
    ["whose record is older than the holder's", { record: { ...record, holder: "c-3", transitions: 3 } }],
    ["whose record a manager without voters wrote", { record: { ...record, voters: undefined } }],
    ["that granted the same before", { grant }],
    ["that granted an earlier holder", { grant: { ...grant, transitions: 3, holderUID: "u9" } }],
  ])("%s grants", (_, view) => {
    expect(planPromise({ ...voter, ...view }, request)).toEqual({
      voter: "c-2",
      holderUID: "u1",
      transitions: 4,
      nonce: "n",
      granted: true,
    });
  });

  test.each<[string, Partial<VoterView>, Partial<PromiseRequest>, RegExp]>([
    ["of another name", {}, { voter: "c-3" }, /this is c-2/],
    ["of another cluster", {}, { cluster: "other/c" }, /of ns\/c/],
    ["that holds the Lease", { isHolder: true }, {}, /holds the lease itself/],
    ["whose own acquisition is open", { claiming: true }, {}, /acquisition/],
    ["that saw a later holder", { record: { ...record, transitions: 5, holder: "c-3" } }, {}, /was the holder since/],
    ["that saw a later release", { record: { ...record, transitions: 5, holder: "" } }, {}, /was the holder since/],
    ["that saw the release", { record: { ...record, holder: "" } }, {}, /given back/],
    ["that sees another pod of the holder's name", {}, { holderUID: "u0" }, /the holder is c-1/],
    ["that promised a later holder", { grant: { ...grant, transitions: 5 } }, {}, /promised/],
    ["that promised another one the same", { grant: { ...grant, holderUID: "u9" } }, {}, /promised/],
    ["that is asked for no time", {}, { durationMs: 0 }, /out of range/],
    ["that is asked for ever", {}, { durationMs: 1e12 }, /out of range/],
  ])("%s refuses", (_, view, asked, reason) => {
    const answer = planPromise({ ...voter, ...view }, { ...request, ...asked });
    expect(answer).toMatchObject({ granted: false, reason: expect.stringMatching(reason) });
  });
});

test("an answer counts only for the question that it answers", () => {
  const answer = planPromise(voter, request);
  expect(isGranted(request, answer)).toBe(true);
  for (const other of [{ nonce: "m" }, { voter: "c-3" }, { holderUID: "u2" }, { transitions: 5 }, { granted: false }])
    expect(isGranted(request, { ...answer, ...other })).toBe(false);
  for (const junk of [null, undefined, "yes", {}, { granted: true }]) expect(isGranted(request, junk)).toBe(false);
});

test("a promise lasts from its receipt, and a shorter one takes nothing from a longer one", () => {
  const first = grantOf(undefined, request, 1_000);
  expect(first).toEqual({ holder: "c-1", holderUID: "u1", transitions: 4, until: 16_000 });
  expect(grantOf(first, { ...request, durationMs: 1_000 }, 2_000).until).toBe(16_000);
  expect(binds(first, record, 15_999)).toBe(true);
  expect(binds(first, record, 16_000)).toBe(false);
  expect(binds(undefined, record, 0)).toBe(false);
});

test("only the release of the very record ends a promise early", () => {
  const released = { ...record, holder: "" };
  expect(binds(grant, released, 1)).toBe(false);
  expect(binds(grant, { ...released, transitions: 3 }, 1)).toBe(true);
  expect(binds(grant, { ...released, voters: { ...record.voters, holderUID: "u9" } }, 1)).toBe(true);
  expect(binds(grant, { ...released, voters: undefined }, 1)).toBe(true);
  expect(binds(grant, undefined, 1)).toBe(true);
});

test("reads a question and nothing else", () => {
  expect(parsePromiseRequest(JSON.stringify({ ...request, more: 1 }))).toEqual(request);
  for (const text of ["", "null", "[]", "{}", JSON.stringify({ ...request, nonce: 1 }), '{"transitions":null}'])
    expect(parsePromiseRequest(text)).toBeNull();
});
