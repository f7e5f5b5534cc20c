import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareVersions, StoreState } from "../../../src/kube/store-state.ts";
import type { KubeObject, StoreEvent } from "../../../src/ports/kube-api.ts";

interface Thing extends KubeObject {
  value?: number;
}

const aThing = (name: string, version: number, uid = `uid-${name}`): Thing => ({
  metadata: { namespace: "ns", name, uid, resourceVersion: String(version) },
});
const brief = (events: StoreEvent<Thing>[]) =>
  events.map((event) => `${event.type} ${event.object.metadata.name}@${event.object.metadata.resourceVersion}`);

describe("StoreState", () => {
  it("reports a first list as added and a later one as the difference", () => {
    const state = new StoreState<Thing>();
    expect(brief(state.applyList([aThing("a", 1), aThing("b", 2), aThing("c", 3)], "5"))).toEqual([
      "added a@1",
      "added b@2",
      "added c@3",
    ]);
    expect(brief(state.applyList([aThing("a", 1), aThing("b", 7), aThing("d", 8)], "9"))).toEqual([
      "deleted c@3",
      "updated b@7",
      "added d@8",
    ]);
    expect(state.list().map((object) => object.metadata.name)).toEqual(["a", "b", "d"]);
    expect(state.seenVersion).toBe("9");
  });

  it("takes an object of another UID under the same name for another object", () => {
    const state = new StoreState<Thing>();
    state.applyList([aThing("a", 1, "old")], "1");
    expect(brief(state.applyList([aThing("a", 5, "new")], "6"))).toEqual(["deleted a@1", "added a@5"]);
  });

  it("ignores events older than what it has", () => {
    const state = new StoreState<Thing>();
    state.applyList([aThing("a", 5)], "5");
    expect(state.applyWatch("MODIFIED", aThing("a", 4))).toEqual([]);
    expect(state.applyWatch("MODIFIED", aThing("a", 5))).toEqual([]);
    expect(brief(state.applyWatch("MODIFIED", aThing("a", 6)))).toEqual(["updated a@6"]);
    expect(brief(state.applyWatch("DELETED", aThing("a", 7)))).toEqual(["deleted a@7"]);
    expect(state.applyWatch("DELETED", aThing("a", 8))).toEqual([]);
    expect(state.list("ns")).toEqual([]);
  });

  it("moves on by bookmarks but never back", () => {
    const state = new StoreState<Thing>();
    state.applyList([], "5");
    state.applyBookmark("9");
    state.applyBookmark("7");
    expect(state.seenVersion).toBe("9");
  });

  describe("own writes", () => {
    it("show at once, and the watch's echo is not news", () => {
      const state = new StoreState<Thing>();
      state.applyList([aThing("a", 1)], "1");
      expect(brief(state.applyWrite(aThing("a", 4), true))).toEqual(["updated a@4"]);
      expect(brief(state.applyWrite(aThing("b", 5), true))).toEqual(["added b@5"]);
      expect(state.applyWatch("MODIFIED", aThing("a", 4))).toEqual([]);
      expect(state.applyWatch("ADDED", aThing("b", 5))).toEqual([]);
      expect(brief(state.applyWatch("MODIFIED", aThing("a", 6)))).toEqual(["updated a@6"]);
    });

    it("do not bring back what the watch has seen deleted since", () => {
      const state = new StoreState<Thing>();
      state.applyList([], "1");
      state.applyWatch("ADDED", aThing("a", 4));
      state.applyWatch("DELETED", aThing("a", 5));
      expect(state.applyWrite(aThing("a", 4), true)).toEqual([]);
      expect(state.list()).toEqual([]);
    });

    it("survive a list that was made before them, and yield to one made after", () => {
      const state = new StoreState<Thing>();
      state.applyList([], "1");
      state.applyWrite(aThing("a", 8), true);
      expect(state.applyList([], "6")).toEqual([]);
      expect(state.get({ namespace: "ns", name: "a" })).toBeDefined();
      expect(brief(state.applyList([], "9"))).toEqual(["deleted a@8"]);
    });

    it("remove an object that no longer matches the selection", () => {
      const state = new StoreState<Thing>();
      state.applyList([aThing("a", 1)], "1");
      expect(brief(state.applyWrite(aThing("a", 3), false))).toEqual(["deleted a@1"]);
    });

    it("count for nothing before the first list", () => {
      const state = new StoreState<Thing>();
      expect(state.applyWrite(aThing("a", 3), true)).toEqual([]);
    });

    it("are not undone by the deletion of a predecessor", () => {
      const state = new StoreState<Thing>();
      state.applyList([aThing("a", 1, "old")], "1");
      state.applyWrite(aThing("a", 5, "new"), true);
      expect(state.applyWatch("DELETED", aThing("a", 4, "old"))).toEqual([]);
      expect(state.get({ namespace: "ns", name: "a" })?.metadata.uid).toBe("new");
    });
  });

  it("believes a server that was restored from an old backup", () => {
    const state = new StoreState<Thing>();
    state.applyList([aThing("a", 900), aThing("b", 800)], "1000");
    expect(brief(state.applyList([aThing("a", 40)], "50"))).toEqual(["deleted b@800", "updated a@40"]);
    expect(brief(state.applyWatch("MODIFIED", aThing("a", 60)))).toEqual(["updated a@60"]);
  });

  it("keeps namespaces apart", () => {
    const state = new StoreState<Thing>();
    const other: Thing = { metadata: { namespace: "other", name: "a", uid: "x", resourceVersion: "2" } };
    state.applyList([aThing("a", 1), other], "2");
    expect(state.list("ns")).toHaveLength(1);
    expect(state.list("other")).toEqual([other]);
    expect(state.list("none")).toEqual([]);
    expect(state.list()).toHaveLength(2);
  });

  it("ends up equal to the server, and its subscribers too, whatever mix of lists, watches, losses and own writes", () => {
    const change = fc.record({
      name: fc.constantFrom("a", "b", "c"),
      kind: fc.constantFrom("put", "delete"),
      own: fc.boolean(),
      lost: fc.boolean(),
      relist: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const server = new Map<string, Thing>();
        const log: { type: "ADDED" | "MODIFIED" | "DELETED"; object: Thing }[] = [];
        const state = new StoreState<Thing>();
        const mirror = new Map<string, string>();
        const apply = (events: StoreEvent<Thing>[]) => {
          for (const { type, object } of events) {
            const name = object.metadata.name ?? "";
            // A subscriber must never be told of a deletion or an update of what it does not have, nor of a second addition.
            expect(mirror.has(name)).toBe(type !== "added");
            if (type === "deleted") mirror.delete(name);
            else mirror.set(name, `${object.metadata.uid}@${object.metadata.resourceVersion}`);
          }
        };
        let version = 0;
        let delivered = 0;
        apply(state.applyList([], "0"));
        const deliver = () => {
          for (; delivered < log.length; delivered++) {
            const event = log[delivered];
            if (event) apply(state.applyWatch(event.type, event.object));
          }
        };
        const list = () => {
          apply(state.applyList([...server.values()], String(version)));
          delivered = log.length;
        };
        for (const { name, kind, own, lost, relist } of changes) {
          const known = server.get(name);
          version++;
          if (kind === "put") {
            const object = aThing(name, version, known?.metadata.uid ?? `uid-${version}`);
            server.set(name, object);
            log.push({ type: known ? "MODIFIED" : "ADDED", object });
            if (own) apply(state.applyWrite(object, true));
          } else if (known) {
            server.delete(name);
            log.push({
              type: "DELETED",
              object: { metadata: { ...known.metadata, resourceVersion: String(version) } },
            });
          }
          if (relist) list();
          else if (!lost) deliver();
        }
        list();
        const expected = [...server.values()].map(({ metadata }) => [
          metadata.name,
          `${metadata.uid}@${metadata.resourceVersion}`,
        ]);
        expect(Object.fromEntries(mirror)).toEqual(Object.fromEntries(expected));
        expect(state.size).toBe(server.size);
      }),
      { numRuns: 300 },
    );
  });
});

describe("compareVersions", () => {
  it.each([
    ["9", "10", -1],
    ["10", "9", 1],
    ["7", "7", 0],
    ["", "1", -1],
    ["abc", "1", -1],
    ["99999999999999999999", "100000000000000000000", -1],
  ])("%s against %s", (a, b, sign) => {
    expect(Math.sign(compareVersions(a, b))).toBe(sign);
  });
});
