import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DatabaseRole } from "../../../../src/api/generated/databaserole.ts";
import { buildAuthoritySecret } from "../../../../src/build/certificate-secrets.ts";
import { defaultBuildContext } from "../../../../src/build/context.ts";
import { resources } from "../../../../src/kube/resources.ts";
import { createDatabaseRoleReconciler } from "../../../../src/operator/database-role/database-role-controller.ts";
import { secretText } from "../../../../src/pki/inspect.ts";
import { createAuthority } from "../../../../src/pki/issue.ts";
import { createFakeClock, type FakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../../support/fake-kube-api.ts";
import { captureLogs } from "../../../support/log-capture.ts";
import { aCluster } from "../../plan/cluster/fixtures.ts";
import { type StartedStores, startStores } from "../started-stores.ts";

let clock: FakeClock;
let api: FakeKubeApi;
let started: StartedStores;

const key = { namespace: "ns", name: "role-dante" };
const secretKey = { namespace: "ns", name: "role-dante-client-cert" };

const role = (clientCertificate?: DatabaseRole["spec"]["clientCertificate"]): DatabaseRole => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "DatabaseRole",
  metadata: { ...key },
  spec: {
    cluster: { name: "c" },
    name: "dante",
    login: true,
    passwordSecret: { name: "dante-password" },
    ...(clientCertificate ? { clientCertificate } : {}),
  },
});

beforeEach(async () => {
  clock = createFakeClock();
  api = createFakeKubeApi({ clock });
  const cluster = aCluster();
  const { resourceVersion: _, ...metadata } = cluster.metadata;
  api.seed(resources.clusters, { ...cluster, metadata });
  const authority = await createAuthority(
    { commonName: "c", organizationalUnit: "ns" },
    { now: clock.now(), durationDays: 90 },
  );
  api.seed(resources.secrets, buildAuthoritySecret(cluster, "c-ca", authority, defaultBuildContext));
  api.seed(resources.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "ns", name: "dante-password" },
  });
  started = await startStores(api, clock);
});

afterEach(() => started.stop());

/** One pass over the role as it is given. */
async function pass(wanted: DatabaseRole) {
  const known = api.peek(resources.databaseRoles, key);
  if (known) await api.update(resources.databaseRoles, { ...known, spec: wanted.spec });
  else api.seed(resources.databaseRoles, wanted);
  await clock.settle();
  const reconcile = createDatabaseRoleReconciler({ api, stores: started.stores, clock, context: defaultBuildContext });
  const result = await reconcile("ns/role-dante", started.signal, { logger: captureLogs().logger });
  await clock.settle();
  return result;
}

const status = () => api.peek(resources.databaseRoles, key)?.status;

it("issues a certificate for the role, tells of it, and takes it away again", async () => {
  expect(await pass(role({}))).toEqual({ requeueAfterMs: 3_600_000 });
  await pass(role({}));
  const secret = api.peek(resources.secrets, secretKey);
  expect(secret).toMatchObject({
    type: "kubernetes.io/tls",
    metadata: {
      labels: { "app.kubernetes.io/managed-by": "cloudnative-pg" },
      ownerReferences: [{ kind: "DatabaseRole", name: "role-dante", controller: true }],
    },
  });
  const certificate = new X509Certificate((secret && secretText(secret, "tls.crt")) ?? "");
  expect(certificate.subject).toBe("CN=dante");
  expect(status()?.clientCertificate?.expiration).toBe(
    new Date(certificate.validTo).toISOString().replace(".000Z", "Z"),
  );
  await pass(role({ enabled: false }));
  expect(api.peek(resources.secrets, secretKey)).toBeUndefined();
  await pass(role({ enabled: false }));
  expect(status()?.clientCertificate).toBeUndefined();
});

it("tells the primary which version the password Secret has, and leaves the primary's fields alone", async () => {
  await pass({ ...role(), status: { applied: true, observedGeneration: 1 } });
  const version = started.stores.secrets.get({ namespace: "ns", name: "dante-password" })?.metadata.resourceVersion;
  expect(status()).toMatchObject({
    applied: true,
    observedGeneration: 1,
    conditions: [{ type: "PasswordSecretChange", reason: "ChangeDetected", message: version }],
  });
});
