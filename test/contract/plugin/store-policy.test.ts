import { Chart, Testing } from "cdk8s";
import { afterAll, beforeAll, expect, test } from "vitest";
import { objectStore } from "../../../constructs/crds/object-store.ts";
import { BarmanCloudPlugin } from "../../../constructs/index.ts";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { ApiServer, installDefinitions } from "../../reference/api-server.ts";

const stores = "/apis/barmancloud.cnpg.io/v1/namespaces/default/objectstores";
const secret = { name: "keys", key: "k" };
const keys = { accessKeyId: secret, secretAccessKey: secret };

let controlPlane: ControlPlane;
let server: ApiServer;

/** An ObjectStore with these credentials; `name` tells them apart. */
function aStore(name: string, credentials: object, metadata: object = {}) {
  return {
    apiVersion: "barmancloud.cnpg.io/v1",
    kind: "ObjectStore",
    metadata: { name, ...metadata },
    spec: { configuration: { destinationPath: "s3://b/", ...credentials } },
  };
}

beforeAll(async () => {
  controlPlane = await startControlPlane();
  server = new ApiServer(controlPlane);
  await installDefinitions(server, [objectStore]);
  // One that was made before the policy came.
  expect(await server.send("POST", stores, aStore("old", { googleCredentials: {} }))).toMatchObject({ status: 201 });
  const chart = new Chart(Testing.app(), "test");
  new BarmanCloudPlugin(chart, "plugin");
  const manifests = Testing.synth(chart) as { kind: string }[];
  for (const kind of ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]) {
    const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ies").replace(/g$/, "gs")}`;
    const manifest = manifests.find((it) => it.kind === kind);
    expect(await server.send("POST", path, manifest)).toMatchObject({ status: 201 });
  }
  // The API server takes a while to act by a policy.
  const isRefused = async () => (await server.send("POST", `${stores}?dryRun=All`, aStore("try", {}))).status === 422;
  await waitFor("the policy is in force", isRefused, { timeoutMs: 60_000 });
}, 120_000);

afterAll(async () => {
  await server?.close();
  await controlPlane?.stop();
});

test.each([
  ["keys", { s3Credentials: keys }],
  ["the role of the machine", { s3Credentials: { inheritFromIAMRole: true, region: secret } }],
  ["an account's key", { azureCredentials: { storageAccount: secret, storageKey: secret } }],
  ["a connection string", { azureCredentials: { connectionString: secret } }],
  ["the environment of Google", { googleCredentials: { gkeEnvironment: true } }],
  ["a file of Google", { googleCredentials: { applicationCredentials: secret } }],
])("an ObjectStore with %s is taken", async (_name, credentials) => {
  expect(await server.send("POST", `${stores}?dryRun=All`, aStore("good", credentials))).toMatchObject({ status: 201 });
});

test.each([
  ["no credentials", {}, "missing credentials. One and only one of"],
  ["those of two providers", { s3Credentials: keys, googleCredentials: { gkeEnvironment: true } }, "too many"],
  ["half a pair of keys", { s3Credentials: { accessKeyId: secret } }, "both accessKeyId and secretAccessKey"],
  ["nothing of Google", { googleCredentials: {} }, "if gkeEnvironment is false, secret with credentials must be"],
  ["a key without its account", { azureCredentials: { storageKey: secret } }, "storage account must be specified"],
])("an ObjectStore with %s is refused by the API server, with the reason", async (_name, credentials, reason) => {
  const answer = await server.send("POST", stores, aStore("bad", credentials));
  expect(answer).toMatchObject({ status: 422, message: expect.stringContaining(reason) });
});

test("one that was there before can be labelled, and told of, but not changed into another wrong one", async () => {
  const path = `${stores}/old`;
  expect(await server.send("PATCH", path, { metadata: { labels: { a: "b" } } })).toMatchObject({ status: 200 });
  const status = { serverRecoveryWindow: { orders: { firstRecoverabilityPoint: "2026-01-01T00:00:00Z" } } };
  expect(await server.send("PATCH", `${path}/status`, { status })).toMatchObject({ status: 200 });
  const other = { spec: { configuration: { destinationPath: "s3://c/" } } };
  expect(await server.send("PATCH", path, other)).toMatchObject({ status: 422 });
  const mended = { spec: { configuration: { googleCredentials: { gkeEnvironment: true } } } };
  expect(await server.send("PATCH", path, mended)).toMatchObject({ status: 200 });
});

test("the annotation that switches validation off holds here too", async () => {
  const unchecked = aStore("unchecked", {}, { annotations: { "cnpg.io/validation": "disabled" } });
  expect(await server.send("POST", stores, unchecked)).toMatchObject({ status: 201 });
});
