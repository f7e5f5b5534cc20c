import { describe, expect, test } from "vitest";
import { resolveAzureAccount } from "../../../src/barman/azure-account.ts";
import { type Destination, parseDestination } from "../../../src/barman/destination.ts";
import { listSecretKeys } from "../../../src/barman/store-configuration.ts";
import { buildEncryption } from "../../../src/barman/store-encryption.ts";

const cloud = parseDestination("https://acct.blob.core.windows.net/box/path") as Destination;
const emulator = parseDestination("http://azurite:10000/dev/box/path") as Destination;
const azure = (fields: object) => ({ provider: "azure" as const, ...fields });

describe("a storage account", () => {
  test.each([
    ["a key", cloud, { key: "k" }, undefined, "acct", "https://acct.blob.core.windows.net", { kind: "key", key: "k" }],
    [
      "a signature before a key",
      cloud,
      { key: "k", sasToken: "s" },
      undefined,
      "acct",
      "https://acct.blob.core.windows.net",
      { kind: "sas", token: "s" },
    ],
    [
      "another account than the destination's host",
      cloud,
      { account: "other", key: "k" },
      undefined,
      "other",
      "https://acct.blob.core.windows.net",
      { kind: "key", key: "k" },
    ],
    [
      "the pod's identity",
      cloud,
      { identity: "managed" },
      undefined,
      "acct",
      "https://acct.blob.core.windows.net",
      { kind: "identity", identity: "managed" },
    ],
    [
      "a connection string",
      cloud,
      { connectionString: "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=a==;EndpointSuffix=core.example" },
      undefined,
      "n",
      "https://n.blob.core.example",
      { kind: "key", key: "a==" },
    ],
    [
      "a connection string with an address",
      emulator,
      { connectionString: "AccountName=dev;AccountKey=a==;BlobEndpoint=http://azurite:10000/dev/;" },
      undefined,
      "dev",
      "http://azurite:10000/dev",
      { kind: "key", key: "a==" },
    ],
    [
      "a connection string with a signature",
      cloud,
      { connectionString: "BlobEndpoint=https://acct.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x%3D" },
      undefined,
      "acct",
      "https://acct.blob.core.windows.net",
      { kind: "sas", token: "sv=1&sig=x%3D" },
    ],
    [
      "an emulator with a key",
      emulator,
      { key: "k" },
      undefined,
      "dev",
      "http://azurite:10000/dev",
      { kind: "key", key: "k" },
    ],
    [
      "an endpoint of its own",
      cloud,
      { key: "k" },
      "https://private.example/",
      "acct",
      "https://private.example",
      { kind: "key", key: "k" },
    ],
    [
      "an emulator's endpoint without the account",
      emulator,
      { key: "k" },
      "http://other:1",
      "dev",
      "http://other:1/dev",
      { kind: "key", key: "k" },
    ],
  ])("is reached by %s", (_what, destination, fields, url, account, endpoint, secret) => {
    expect(resolveAzureAccount(destination, azure(fields) as never, url)).toEqual({ account, endpoint, secret });
  });

  test.each([
    [{}, "azureCredentials needs one of connectionString"],
    [{ connectionString: "AccountName=x" }, "the connection string names no AccountName with an AccountKey"],
  ])("is not reached by %j", (fields, text) => {
    expect(resolveAzureAccount(cloud, azure(fields), undefined)).toMatchObject({
      error: expect.stringContaining(text),
    });
  });
});

test("Secrets beside an identity of the environment are not read: nobody grants them", () => {
  const named = { connectionString: { name: "s", key: "c" }, storageKey: { name: "s", key: "k" } };
  const destinationPath = "https://acct.blob.core.windows.net/box";
  expect(listSecretKeys({ destinationPath, azureCredentials: named })).toHaveLength(2);
  for (const field of ["inheritFromAzureAD", "useDefaultAzureCredentials"]) {
    expect(listSecretKeys({ destinationPath, azureCredentials: { ...named, [field]: true } })).toEqual([]);
  }
});

test("the encryption of WAL and of base backups is read by the words of each provider", () => {
  const configuration = {
    destinationPath: "gs://b",
    wal: { archiveAdditionalCommandArgs: ["--kms-key-name=key", "--encryption-scope", "scope"] },
    data: { encryption: "aws:kms" as const, additionalCommandArgs: ["--sse-kms-key-id", "id"] },
  };
  expect(buildEncryption(configuration, "wal")).toEqual({ kmsKeyName: "key", encryptionScope: "scope" });
  expect(buildEncryption(configuration, "data")).toEqual({ encryption: "aws:kms", kmsKeyId: "id" });
});
