import { describe, expect, test } from "vitest";
import {
  buildConnection,
  buildWalArchiveOptions,
  buildWalConfiguration,
  describeArchive,
  listSecretKeys,
  type StoreConfiguration,
  unknownArguments,
} from "../../../src/barman/store-configuration.ts";
import { parseToolArguments, parseToolSize } from "../../../src/barman/tool-arguments.ts";

const reference = (key: string) => ({ name: "creds", key });
const s3: StoreConfiguration = {
  destinationPath: "s3://bucket/path/",
  endpointURL: "http://minio:9000",
  s3Credentials: { accessKeyId: reference("id"), secretAccessKey: reference("secret") },
};
const secrets = ({ name, key }: { name: string; key: string }) => `${name}/${key}`;

describe("connection", () => {
  test("S3 keys", () => {
    expect(buildConnection(s3, secrets)).toMatchObject({
      destination: { provider: "s3", bucket: "bucket", path: "path" },
      credentials: { provider: "s3", keys: { accessKeyId: "creds/id", secretAccessKey: "creds/secret" } },
      endpoint: "http://minio:9000",
      ca: undefined,
      region: undefined,
    });
  });

  test("a role is asked for without keys, and the region is honoured with it", () => {
    const configuration = { ...s3, s3Credentials: { inheritFromIAMRole: true, region: reference("region") } };
    expect(buildConnection(configuration, secrets)).toMatchObject({
      credentials: { provider: "s3" },
      region: "creds/region",
    });
    expect(listSecretKeys(configuration)).toEqual([reference("region")]);
  });

  test("session token and CA", () => {
    const configuration = {
      ...s3,
      endpointCA: { name: "ca", key: "ca.crt" },
      s3Credentials: { ...s3.s3Credentials, sessionToken: reference("token") },
    };
    expect(buildConnection(configuration, secrets)).toMatchObject({
      ca: "ca/ca.crt",
      credentials: { keys: { sessionToken: "creds/token" } },
    });
  });

  test.each([
    [
      { destinationPath: "https://a.blob.core.windows.net/c", azureCredentials: { inheritFromAzureAD: true } },
      { provider: "azure", identity: "managed" },
    ],
    [
      { destinationPath: "https://a.blob.core.windows.net/c", azureCredentials: { useDefaultAzureCredentials: true } },
      { provider: "azure", identity: "default" },
    ],
    [
      {
        destinationPath: "https://a.blob.core.windows.net/c",
        azureCredentials: { storageAccount: reference("acct"), storageKey: reference("key") },
      },
      { provider: "azure", account: "creds/acct", key: "creds/key" },
    ],
    [{ destinationPath: "gs://b/p", googleCredentials: { gkeEnvironment: true } }, { provider: "gcs" }],
    [
      { destinationPath: "gs://b/p", googleCredentials: { applicationCredentials: reference("json") } },
      { provider: "gcs", applicationCredentials: "creds/json" },
    ],
  ] as [StoreConfiguration, object][])("%j", (configuration, credentials) => {
    expect(buildConnection(configuration, secrets)).toMatchObject({ credentials });
    const connection = buildConnection(configuration, secrets);
    expect("error" in connection ? connection : connection.credentials).toEqual(credentials);
  });

  test.each([
    [{ destinationPath: "bucket" }, "destinationPath"],
    [{ destinationPath: "s3://b/p" }, "no credentials defined"],
    [{ destinationPath: "s3://b/p", googleCredentials: { gkeEnvironment: true } }, "googleCredentials does not fit"],
    [{ destinationPath: "gs://b/p", googleCredentials: {} }, "applicationCredentials"],
    [{ destinationPath: "s3://b/p", s3Credentials: { accessKeyId: reference("id") } }, "secretAccessKey"],
  ] as [StoreConfiguration, string][])("%j is refused", (configuration, text) => {
    expect(buildConnection(configuration, secrets)).toEqual({ error: expect.stringContaining(text) });
  });

  test("a Secret that is not there is named", () => {
    const missing = buildConnection(s3, ({ key }) => (key === "secret" ? undefined : "x"));
    expect(missing).toEqual({ error: "Secret creds with key secret is not there" });
  });

  test("options that describe the endpoint hold wherever they were written", () => {
    for (const lists of [
      { wal: { archiveAdditionalCommandArgs: ["--addressing-style=virtual", "--read-timeout=5"] } },
      { wal: { restoreAdditionalCommandArgs: ["--addressing-style", "virtual", "--read-timeout", "5"] } },
      { data: { additionalCommandArgs: ["--addressing-style=virtual", "--read-timeout=5"] } },
      { data: { restoreAdditionalCommandArgs: ["--read-timeout=5", "--addressing-style=virtual"] } },
    ]) {
      expect(buildConnection({ ...s3, ...lists }, secrets)).toMatchObject({
        addressing: "virtual",
        readTimeoutMs: 5000,
      });
    }
  });

  test("an archive is told from another by endpoint and place", () => {
    const connection = buildConnection(s3, secrets);
    expect("error" in connection ? "" : describeArchive(connection)).toBe("http://minio:9000 s3://bucket/path");
  });
});

describe("WAL", () => {
  test("compression, level, encryption, tags", () => {
    const configuration: StoreConfiguration = {
      ...s3,
      tags: { team: "a" },
      historyTags: { keep: "ever" },
      wal: {
        compression: "gzip",
        maxParallel: 4,
        encryption: "aws:kms",
        archiveAdditionalCommandArgs: ["--compression-level=high", "--sse-kms-key-id", "key-1", "--made-up=1"],
      },
    };
    expect(buildWalConfiguration(configuration)).toEqual({
      compression: "gzip",
      level: 9,
      encryption: "aws:kms",
      kmsKeyId: "key-1",
      maxParallel: 4,
      partials: true,
      tags: { team: "a" },
      historyTags: { keep: "ever" },
    });
    expect(unknownArguments(configuration)).toEqual(["--made-up=1"]);
    expect(buildWalArchiveOptions(configuration, "srv")).toEqual([
      "--gzip",
      "-e",
      "aws:kms",
      "--compression-level=high",
      "--sse-kms-key-id",
      "key-1",
      "--made-up=1",
      "--endpoint-url",
      "http://minio:9000",
      "--tags",
      "team,a",
      "--history-tags",
      "keep,ever",
      "--cloud-provider",
      "aws-s3",
      "s3://bucket/path/",
      "srv",
    ]);
  });

  test("a segment may be asked for without its partial file", () => {
    const wal = { restoreAdditionalCommandArgs: ["--no-partial"] };
    expect(buildWalConfiguration({ ...s3, wal }).partials).toBe(false);
  });

  test("nothing said is nothing asked", () => {
    expect(buildWalConfiguration(s3)).toMatchObject({
      compression: undefined,
      level: undefined,
      encryption: undefined,
    });
  });
});

describe("tool arguments", () => {
  test("a value that stands twice is not lost", () => {
    const found = parseToolArguments(["--min-chunk-size", "5MB", "--read-timeout", "5", "-J", "5"]);
    expect(found).toEqual({ minChunkBytes: 5 * 1024 * 1024, readTimeoutMs: 5000, jobs: 5, unknown: [] });
  });

  test("the first list that names an option wins", () => {
    expect(parseToolArguments(["--read-timeout=1"], ["--read-timeout=2"])).toMatchObject({ readTimeoutMs: 1000 });
  });

  test("values that cannot be read are reported, and flags are known", () => {
    const found = parseToolArguments(["--addressing-style", "sideways", "-vv", "--no-partial", "--read-timeout"]);
    expect(found).toEqual({ noPartial: true, unknown: ["--addressing-style sideways", "--read-timeout"] });
  });

  test.each([
    ["100", 100],
    ["1kB", 1024],
    ["5MB", 5 * 1024 ** 2],
    ["100GB", 100 * 1024 ** 3],
    ["1TB", 1024 ** 4],
    ["1KiB", 1000],
    ["2mib", 2_000_000],
    ["1x", undefined],
    ["", undefined],
  ])("size %j", (text, bytes) => {
    expect(parseToolSize(text)).toBe(bytes);
  });
});
