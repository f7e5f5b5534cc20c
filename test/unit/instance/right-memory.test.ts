import { expect, test } from "vitest";
import { RightMemory } from "../../../src/instance/isolation/right-memory.ts";
import { compileLeaseTimings } from "../../../src/plan/instance/lease.ts";
import { parseRightNote } from "../../../src/plan/instance/right-note.ts";
import type { WriteRight } from "../../../src/plan/instance/right-to-write.ts";

const timings = compileLeaseTimings(undefined);
const right: WriteRight = { basis: 10, transitions: 2, voters: ["c-1", "c-2"], maybeVoters: ["c-1", "c-3"] };

function world() {
  const sent: { note: string; kept: () => void; failed: (error: Error) => void }[] = [];
  const addresses = new Map([["c-2", { host: "10.0.0.2", port: 8000 }]]);
  const memory = new RightMemory({
    host: {
      keep: (note) => new Promise<void>((resolve, reject) => sent.push({ note, kept: resolve, failed: reject })),
    },
    podName: "c-1",
    timings: () => timings,
    addressOf: (voter) => addresses.get(voter),
  });
  return { memory, sent, addresses };
}

test("the launcher is told of a right and of whom to ask, and again only when that changes", async () => {
  const { memory, sent, addresses } = world();
  const first = memory.remember(right);
  sent[0]?.kept();
  await first;
  await memory.remember({ ...right, basis: 2_010 });
  expect(sent).toHaveLength(1);
  const { basis: _, ...ground } = right;
  const peers = { "c-2": { host: "10.0.0.2", port: 8000 } };
  expect(parseRightNote(sent[0]?.note ?? "")).toEqual({ ground, timings, peers });
  addresses.set("c-3", { host: "10.0.0.3", port: 8000 });
  void memory.remember(right);
  expect(Object.keys(parseRightNote(sent[1]?.note ?? "")?.peers ?? {})).toEqual(["c-2", "c-3"]);
  void memory.remember(undefined);
  expect(sent[2]?.note).toBe("");
});

test("whoever asks again before the launcher has answered waits for the same answer", async () => {
  const { memory, sent } = world();
  void memory.remember(right);
  let isKept = false;
  const again = memory.remember(right).then(() => {
    isKept = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isKept).toBe(false);
  sent[0]?.kept();
  await again;
  expect(sent).toHaveLength(1);
});

test("a note that was not taken is sent again", async () => {
  const { memory, sent } = world();
  const first = memory.remember(right);
  sent[0]?.failed(new Error("the channel is closed"));
  await expect(first).rejects.toThrow("closed");
  void memory.remember(right);
  expect(sent).toHaveLength(2);
});
