import { expect, test } from "vitest";
import { checkManifest } from "../../../../constructs/base/check-manifest.ts";
import { validateObjectStore } from "../../../../src/schema/admission/index.ts";
import { anObjectStore } from "../../../support/barman-cloud-objects.ts";

const key = { name: "keys", key: "k" };

test.each([
  ["no provider", { s3Credentials: undefined }, "missing credentials"],
  ["two providers", { googleCredentials: { gkeEnvironment: true } }, "too many credentials"],
  ["half of the keys", { s3Credentials: { accessKeyId: key } }, "both accessKeyId and secretAccessKey"],
  [
    "keys beside a role",
    { s3Credentials: { accessKeyId: key, secretAccessKey: key, inheritFromIAMRole: true } },
    "only one AWS authentication method",
  ],
  [
    "Google without anything",
    { destinationPath: "gs://b/p", s3Credentials: undefined, googleCredentials: {} },
    "secret with credentials must be provided",
  ],
  [
    "Azure without a key",
    {
      destinationPath: "https://a.blob.core.windows.net/c",
      s3Credentials: undefined,
      azureCredentials: { storageAccount: key },
    },
    "one and only one of storage key",
  ],
])("an ObjectStore with %s is refused where it is synthesized", (_what, configuration, message) => {
  const store = anObjectStore("own", {}, configuration as object);
  expect(validateObjectStore(store).map((issue) => issue.message)).toEqual([expect.stringContaining(message)]);
  const defined = JSON.parse(JSON.stringify(store)) as typeof store;
  expect(checkManifest(defined)).toEqual([expect.stringMatching(/^ObjectStore "own": spec\.configuration/)]);
});

test("one that is complete is not", () => {
  expect(checkManifest(anObjectStore("own"))).toEqual([]);
});
