import { expect, test } from "vitest";
import { ObjectStoreError } from "../../../src/ports/object-store.ts";
import { formatBatch, type Removal, readBatch, removeByBatches } from "../../../src/store/batch-removal.ts";

test("a batch is one body of several requests", () => {
  const { contentType, body } = formatBatch(
    [{ path: "/c/a" }, { path: "/c/b", headers: { "x-ms-date": "now" } }],
    "b0",
  );
  expect(contentType).toBe("multipart/mixed; boundary=b0");
  expect(body.toString().split("\r\n")).toEqual([
    "--b0",
    "Content-Type: application/http",
    "Content-Transfer-Encoding: binary",
    "Content-ID: 0",
    "",
    "DELETE /c/a HTTP/1.1",
    "Content-Length: 0",
    "",
    "",
    "--b0",
    "Content-Type: application/http",
    "Content-Transfer-Encoding: binary",
    "Content-ID: 1",
    "",
    "DELETE /c/b HTTP/1.1",
    "x-ms-date: now",
    "Content-Length: 0",
    "",
    "",
    "--b0--",
    "",
  ]);
});

const part = (id: string, status: string) =>
  ["--r0", "Content-Type: application/http", `Content-ID: ${id}`, "", `HTTP/1.1 ${status}`, "x: y", "", ""].join(
    "\r\n",
  );

test.each([
  [
    "Azure's",
    part("0", "202 Accepted") + part("1", "404 The specified blob does not exist."),
    [
      [0, 202],
      [1, 404],
    ],
  ],
  [
    "Google's",
    part("<response-1>", "204 No Content") + part("<response-0>", "404 Not Found"),
    [
      [1, 204],
      [0, 404],
    ],
  ],
  ["no", "<html>nonsense</html>", []],
])("%s answer tells what became of each part", (_name, text, expected) => {
  expect([...readBatch(`${text}--r0--\r\n`)]).toEqual(expected);
});

function removal(answer: (keys: readonly string[]) => string | Error) {
  const batches: (readonly string[])[] = [];
  const single: string[] = [];
  const how: Removal = {
    batchSize: 2,
    async sendBatch(keys) {
      batches.push(keys);
      const said = answer(keys);
      if (said instanceof Error) throw said;
      return said;
    },
    removeOne: async (key) => void single.push(key),
  };
  return { batches, single, how };
}

test("what a batch does not say to be gone is removed by itself", async () => {
  const { batches, single, how } = removal(
    (keys) => part("0", "204 No Content") + part("1", keys.includes("d") ? "500" : "204"),
  );
  await removeByBatches(["a", "b", "c", "d", "e"], how);
  expect(batches).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  expect(single).toEqual(["d", "e"]);
});

test("a store that takes no batches is asked for one object after the other", async () => {
  const refusal = new ObjectStoreError("no", { kind: "invalid", operation: "DELETE BATCH", key: "" });
  const { single, how } = removal(() => refusal);
  await removeByBatches(["a", "b", "c"], how);
  expect(single.sort()).toEqual(["a", "b", "c"]);
  const broken = removal(() => new Error("aborted"));
  await expect(removeByBatches(["a", "b"], broken.how)).rejects.toThrow("aborted");
});
