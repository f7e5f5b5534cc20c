import { describe, expect, test } from "vitest";
import { resources } from "../../../../src/kube/resources.ts";
import { CachedReader, cacheMs } from "../../../../src/plugin/barman-cloud/cached-reader.ts";
import { createStoreAccess } from "../../../../src/plugin/barman-cloud/store-access.ts";
import type { Files } from "../../../../src/ports/files.ts";
import { anObjectStore } from "../../../support/barman-cloud-objects.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../../support/fake-kube-api.ts";

const namespace = "shop";
const encode = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
const reference = { objectStore: "own", serverName: "orders" };

function setUp(store = anObjectStore("own"), certificate?: string) {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  api.seed(resources.objectStores, store);
  const secret = (name: string, values: Record<string, string>) => {
    const object = {
      apiVersion: "v1" as const,
      kind: "Secret" as const,
      metadata: { namespace, name },
      data: encode(values),
    };
    return api.seed(resources.secrets, object);
  };
  const files = { read: async (path: string) => (path === "/ca/own/barman-ca.crt" ? certificate : undefined) } as Files;
  const reader = new CachedReader(api, clock);
  return { clock, api, secret, access: createStoreAccess({ reader, files, namespace, env: {}, certificates: "/ca" }) };
}

describe("what an archive is", () => {
  test("comes with the credentials of now, of which a trailing newline is none", async () => {
    const { access, secret } = setUp();
    secret("keys", { id: "me\n", secret: "word" });
    const facts = await access.describe(reference);
    expect(facts.connection).toMatchObject({
      destination: { provider: "s3", bucket: "backups", path: "own" },
      credentials: { provider: "s3", keys: { accessKeyId: "me", secretAccessKey: "word" } },
    });
    expect(facts.keys.prefix).toBe("own/orders/");
  });

  test("has another fingerprint once its credentials were replaced, and at once when they were refused", async () => {
    const { access, api, clock, secret } = setUp();
    const live = secret("keys", { id: "me", secret: "old" });
    const before = await access.describe(reference);
    expect((await access.describe(reference)).fingerprint).toBe(before.fingerprint);
    await api.update(resources.secrets, { ...live, data: encode({ id: "me", secret: "new" }) });
    expect((await access.describe(reference)).fingerprint).toBe(before.fingerprint);
    access.forget(before);
    const after = await access.describe(reference);
    expect(after.fingerprint).not.toBe(before.fingerprint);
    await clock.advance(cacheMs);
    expect((await access.describe(reference)).fingerprint).toBe(after.fingerprint);
  });

  test("takes the endpoint's authority from the mounted file, whatever Secret it came from", async () => {
    const ca = { endpointCA: { name: "keys", key: "id" } };
    const { access, secret } = setUp(anObjectStore("own", {}, ca), "PEM");
    secret("keys", { id: "me", secret: "word" });
    expect((await access.describe(reference)).connection).toMatchObject({
      ca: "PEM",
      credentials: { keys: { accessKeyId: "me" } },
    });
  });

  test("may be on Azure or Google, whose credentials are read alike", async () => {
    const azure = anObjectStore(
      "own",
      {},
      {
        destinationPath: "https://account.blob.core.windows.net/container/path",
        s3Credentials: undefined as never,
        azureCredentials: { storageAccount: { name: "az", key: "a" }, storageKey: { name: "az", key: "k" } },
      },
    );
    const onAzure = setUp(azure);
    onAzure.secret("az", { a: "account", k: "key" });
    const facts = await onAzure.access.describe(reference);
    expect(facts.connection.credentials).toEqual({ provider: "azure", account: "account", key: "key" });
    const store = await onAzure.access.open(facts, "data");
    expect(store.location).toBe("https://account.blob.core.windows.net/container");
    store.close();

    const google = anObjectStore(
      "own",
      {},
      {
        destinationPath: "gs://bucket/path",
        s3Credentials: undefined as never,
        googleCredentials: { applicationCredentials: { name: "g", key: "json" } },
      },
    );
    const onGoogle = setUp(google);
    onGoogle.secret("g", { json: '{"type":"password"}' });
    const unusable = await onGoogle.access.describe(reference);
    expect(unusable.connection.credentials).toEqual({
      provider: "gcs",
      applicationCredentials: '{"type":"password"}',
    });
    await expect(onGoogle.access.open(unusable, "wal")).rejects.toMatchObject({
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(/^ObjectStore shop\/own: .*"password"/),
    });
  });
});

describe("what is amiss", () => {
  test.each([
    [
      "the rights are not there yet",
      "forbidden" as const,
      "FAILED_PRECONDITION",
      /Secret shop\/keys may not be read yet/,
    ],
    ["the API server does not answer", "unavailable" as const, "UNAVAILABLE", /Secret shop\/keys cannot be read now/],
    ["the Secret is missing", "notFound" as const, "FAILED_PRECONDITION", /Secret shop\/keys does not exist/],
  ])("%s", async (_, kind, status, message) => {
    const { access, api } = setUp();
    api.intercept((request) => (request.plural === "secrets" ? fault(kind) : undefined));
    await expect(access.describe(reference)).rejects.toMatchObject({ status, message: expect.stringMatching(message) });
  });

  test.each([
    ["a key of the Secret", anObjectStore("own"), /Secret keys with key secret is not there/],
    [
      "the destination's form",
      anObjectStore("own", {}, { destinationPath: "ftp://somewhere" }),
      /ObjectStore shop\/own: .*ftp:\/\/somewhere/,
    ],
    [
      "the file of the authority",
      anObjectStore("own", {}, { endpointCA: { name: "ca", key: "x" } }),
      /names an endpointCA, but \/ca\/own\/barman-ca.crt is not there/,
    ],
  ])("%s is named", async (_, store, message) => {
    const { access, secret } = setUp(store);
    secret("keys", { id: "me" });
    await expect(access.describe(reference)).rejects.toMatchObject({
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(message),
    });
  });
});
