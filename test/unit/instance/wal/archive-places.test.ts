import { describe, expect, test } from "vitest";
import type { StoreConfiguration } from "../../../../src/barman/store-configuration.ts";
import { ArchivePlaces } from "../../../../src/instance/wal/archive-places.ts";
import { resources } from "../../../../src/kube/resources.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../../support/fake-kube-api.ts";

const namespace = "shop";
const field = "spec.backup.barmanObjectStore";

function setUp(secrets: Readonly<Record<string, string>>, environment = {}) {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  const data = Object.fromEntries(
    Object.entries(secrets).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
  );
  kube.seed(resources.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name: "keys" },
    data,
  });
  return new ArchivePlaces({ kube, clock, namespace, environment });
}

const key = (name: string) => ({ name: "keys", key: name });
const onAzure = "https://acct.blob.core.windows.net/box/path";

const reached: readonly [string, StoreConfiguration, string][] = [
  [
    "on S3",
    { destinationPath: "s3://box/path", s3Credentials: { accessKeyId: key("a"), secretAccessKey: key("b") } },
    "s3://box",
  ],
  ["on S3 by a role", { destinationPath: "s3://box/path", s3Credentials: { inheritFromIAMRole: true } }, "s3://box"],
  [
    "on Azure by a connection string",
    { destinationPath: onAzure, azureCredentials: { connectionString: key("c") } },
    "https://acct.blob.core.windows.net/box",
  ],
  [
    "on Azure by a key",
    { destinationPath: onAzure, azureCredentials: { storageAccount: key("a"), storageKey: key("b") } },
    "https://acct.blob.core.windows.net/box",
  ],
  [
    "on Azure by a signature",
    { destinationPath: onAzure, azureCredentials: { storageAccount: key("a"), storageSasToken: key("b") } },
    "https://acct.blob.core.windows.net/box",
  ],
  [
    "on Azure by the pod's identity",
    { destinationPath: onAzure, azureCredentials: { inheritFromAzureAD: true } },
    "https://acct.blob.core.windows.net/box",
  ],
  [
    "on Azure by what the environment has",
    { destinationPath: onAzure, azureCredentials: { useDefaultAzureCredentials: true } },
    "https://acct.blob.core.windows.net/box",
  ],
  [
    "on Google by a key",
    { destinationPath: "gs://box/path", googleCredentials: { applicationCredentials: key("json") } },
    "gs://box",
  ],
  [
    "on Google by the machine's account",
    { destinationPath: "gs://box/path", googleCredentials: { gkeEnvironment: true } },
    "gs://box",
  ],
];

describe("an archive that the Cluster describes itself", () => {
  test.each(reached)("%s is reached", async (_what, configuration, location) => {
    const places = setUp({
      a: "acct",
      b: "c2VjcmV0",
      c: "AccountName=acct;AccountKey=c2VjcmV0\n",
      json: '{"type":"service_account","client_email":"a@b","private_key":"k"}',
    });
    const facts = await places.describe({ configuration, serverName: "orders", field });
    expect(facts.keys.prefix).toBe("path/orders/");
    for (const purpose of ["wal", "data"] as const) {
      const store = await places.open(facts, purpose);
      expect(
        store.location.startsWith(location.replace("https://acct.blob.core.windows.net/box", "https://acct.blob")),
      ).toBe(true);
      store.close();
    }
  });

  test("whose credentials cannot be used says in which field", async () => {
    const places = setUp({ c: "AccountName=acct" });
    const configuration = { destinationPath: onAzure, azureCredentials: { connectionString: key("c") } };
    const facts = await places.describe({ configuration, serverName: "orders", field });
    await expect(places.open(facts, "wal")).rejects.toMatchObject({
      kind: "local",
      message: expect.stringMatching(/^spec\.backup\.barmanObjectStore: the connection string/),
    });
    const missing = { ...configuration, azureCredentials: { connectionString: key("none") } };
    await expect(places.describe({ configuration: missing, serverName: "orders", field })).rejects.toMatchObject({
      kind: "denied",
      message: `${field}: Secret keys with key none is not there`,
    });
  });
});
