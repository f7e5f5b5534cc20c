import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Extractor } from "../../../../src/archive/base/extract-tar.ts";
import { readTar } from "../../../../src/archive/base/read-tar.ts";
import { ItemQueue, tarBytes } from "../../../../src/archive/base/tar-bytes.ts";
import type { TarItem } from "../../../../src/archive/base/tar-items.ts";
import type { TarEntry } from "../../../../src/barman/tar-header.ts";
import { MemoryTree } from "../../../support/memory-tree.ts";

const { signal } = new AbortController();

function item(fields: Partial<TarEntry> & { name: string }, content?: string | Uint8Array): TarItem {
  const bytes = content === undefined ? undefined : Buffer.from(content);
  const entry: TarEntry = {
    kind: "file",
    mode: 0o600,
    uid: 1,
    gid: 1,
    size: bytes?.length ?? 0,
    mtimeNs: 1_500_000_000n,
    linkName: "",
    ...fields,
  };
  return bytes ? { entry, content: bytes } : { entry };
}

async function tar(items: readonly TarItem[]): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  const queue = new ItemQueue(
    (async function* () {
      yield* items;
    })(),
  );
  for await (const piece of tarBytes(queue, () => false)) parts.push(piece);
  return Buffer.concat(parts);
}

async function* cut(data: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

async function extract(items: readonly TarItem[]): Promise<MemoryTree> {
  const tree = new MemoryTree();
  await tree.makeDirectory("/target", 0o700);
  const extractor = new Extractor({ tree, folder: "/target", holdBack: "global/pg_control", signal });
  await extractor.extract(cut(await tar(items), 1000));
  return tree;
}

test("what is written is read again, whatever the names, sizes, times and cuts", async () => {
  const anItem = fc.record({
    name: fc
      .string({ unit: "binary", minLength: 1, maxLength: 200 })
      .filter((text) => !/[\0/\ud800-\udfff]/.test(text)),
    content: fc.uint8Array({ maxLength: 3000 }),
    mode: fc.integer({ min: 0, max: 0o7777 }),
    uid: fc.integer({ min: 0, max: 2 ** 31 }),
    mtimeNs: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 19n }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(anItem, { maxLength: 8 }), fc.integer({ min: 1, max: 5000 }), async (list, size) => {
      const items = list.map(({ content, ...fields }) => item(fields, content));
      const bytes = await tar(items);
      expect(bytes.length % 10_240).toBe(0);
      const read: { entry: TarEntry; content: Buffer }[] = [];
      for await (const { entry, content } of readTar(cut(bytes, size))) {
        const parts: Uint8Array[] = [];
        for await (const chunk of content) parts.push(Uint8Array.from(chunk));
        read.push({ entry, content: Buffer.concat(parts) });
      }
      expect(read.map(({ entry }) => entry)).toEqual(items.map(({ entry }) => entry));
      expect(read.map(({ content }) => content.toString("hex"))).toEqual(
        list.map(({ content }) => Buffer.from(content).toString("hex")),
      );
    }),
    { numRuns: 60 },
  );
});

describe("extraction", () => {
  test("makes folders, files and links, the last entry of a name winning, and holds the control file back", async () => {
    const tree = await extract([
      item({ name: ".", kind: "directory", mode: 0o750 }),
      item({ name: "./PG_VERSION" }, "14"),
      item({ name: "base/1/2" }, "data"),
      item({ name: "base/1/3", kind: "hardlink", linkName: "base/1/2" }),
      item({ name: "./postgresql.conf", kind: "symlink", linkName: "/etc/postgresql.conf" }),
      item({ name: "global/pg_control" }, "control"),
      item({ name: "./PG_VERSION" }, "15"),
    ]);
    const text = (path: string) => {
      const node = tree.nodes.get(`/target/${path}`);
      return node?.kind === "file" ? node.bytes.toString() : node;
    };
    expect(text("PG_VERSION")).toBe("15");
    expect(text("base/1/3")).toBe("data");
    expect(text("postgresql.conf")).toMatchObject({ target: "/etc/postgresql.conf" });
    expect(text("global/pg_control")).toBeUndefined();
    expect(tree.nodes.get("/target")).toMatchObject({ mode: 0o750 });
  });

  test.each<[string, TarItem[]]>([
    ["a name with dots", [item({ name: "base/../../etc/passwd" }, "x")]],
    ["an absolute name", [item({ name: "/etc/passwd" }, "x")]],
    ["a path through a link", [item({ name: "a", kind: "symlink", linkName: "/etc" }), item({ name: "a/b" }, "x")]],
    [
      "a folder in place of a link",
      [item({ name: "a", kind: "symlink", linkName: "/etc" }), item({ name: "a", kind: "directory" })],
    ],
    [
      "a hard link through a link",
      [
        item({ name: "a", kind: "symlink", linkName: "/etc" }),
        item({ name: "b", kind: "hardlink", linkName: "a/passwd" }),
      ],
    ],
    ["a hard link out of the folder", [item({ name: "b", kind: "hardlink", linkName: "../../etc/passwd" })]],
    ["the folder itself as a file", [item({ name: "." }, "x")]],
  ])("refuses %s", async (_what, items) => {
    await expect(extract(items)).rejects.toMatchObject({ name: "BaseError", kind: "damaged" });
  });

  test("says of an archive that ends early that it is damaged", async () => {
    const bytes = await tar([item({ name: "a" }, Buffer.alloc(5000))]);
    const extractor = new Extractor({ tree: new MemoryTree(), folder: "/target", signal });
    await expect(extractor.extract(cut(bytes.subarray(0, 3000), 500))).rejects.toThrow("ends early");
  });
});

test("an archive ends before the item that no longer fits, and one that is joined stays", async () => {
  const items = [item({ name: "a" }, "1"), item({ name: "b" }, "2"), { ...item({ name: "c" }, "3"), joined: true }];
  const queue = new ItemQueue(
    (async function* () {
      yield* items;
    })(),
  );
  const names: string[][] = [];
  while (!queue.ended) {
    const found: string[] = [];
    for await (const { entry } of readTar(tarBytes(queue, () => true))) found.push(entry.name);
    names.push(found);
  }
  expect(names).toEqual([["a"], ["b", "c"]]);
});
