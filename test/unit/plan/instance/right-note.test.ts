import { expect, test } from "vitest";
import { compileLeaseTimings } from "../../../../src/plan/instance/lease.ts";
import { formatRightNote, parseRightNote } from "../../../../src/plan/instance/right-note.ts";

const note = {
  ground: { transitions: 3, voters: ["c-1", "c-2"], maybeVoters: ["c-3"] },
  timings: compileLeaseTimings({ leaseDurationSeconds: 30, renewDeadlineSeconds: 20 }),
  peers: { "c-2": { host: "10.0.0.2", port: 8000 } },
};

test("what one runtime notes the next one reads", () => {
  expect(parseRightNote(formatRightNote(note))).toEqual(note);
  // The age of a right is told by the deadline alone.
  const right = { ...note.ground, basis: 17 };
  expect(parseRightNote(formatRightNote({ ...note, ground: right }))).toEqual(note);
});

test.each([
  ["nothing", ""],
  ["no JSON", "{"],
  ["no object", "null"],
  ["no voters", JSON.stringify({ ...note, ground: { ...note.ground, voters: undefined } })],
  ["no voters of unknown writes", JSON.stringify({ ...note, ground: { ...note.ground, maybeVoters: undefined } })],
  ["voters that are no names", JSON.stringify({ ...note, ground: { ...note.ground, voters: [1] } })],
  ["no transitions", JSON.stringify({ ...note, ground: { ...note.ground, transitions: "3" } })],
  ["a time that is missing", JSON.stringify({ ...note, timings: { ...note.timings, leaseDurationMs: undefined } })],
  ["a time that is none", JSON.stringify({ ...note, timings: { ...note.timings, renewDeadlineMs: 0 } })],
  ["no addresses", JSON.stringify({ ...note, peers: null })],
])("a note with %s is none", (_what, text) => {
  expect(parseRightNote(text)).toBeUndefined();
});
