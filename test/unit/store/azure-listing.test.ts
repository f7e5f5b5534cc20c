import { expect, test } from "vitest";
import { parseListing } from "../../../src/store/azure/azure-listing.ts";

const blob = (name: string, properties: string) =>
  `<Blob><Name>${name}</Name><Properties><Content-Length>5</Content-Length>${properties}</Properties></Blob>`;
const listing = (blobs: string) =>
  `<?xml version="1.0"?><EnumerationResults><Blobs>${blobs}</Blobs><NextMarker /></EnumerationResults>`;

test("folders of a hierarchical namespace are no objects", () => {
  const page = parseListing(
    listing(
      blob("orders/wals", "<ResourceType>directory</ResourceType>") +
        blob("orders/wals/00000001.history", "<ResourceType>file</ResourceType>") +
        blob("orders/base/a&amp;b", ""),
    ),
  );
  expect(page?.objects.map(({ key, size }) => [key, size])).toEqual([
    ["orders/wals/00000001.history", 5],
    ["orders/base/a&b", 5],
  ]);
  expect(page).toMatchObject({ prefixes: [], marker: "" });
  expect(parseListing("<html></html>")).toBeUndefined();
});
