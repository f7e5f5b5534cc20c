import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import type { Secret } from "../../../src/api/generated/kubernetes.ts";
import type { KeyPair } from "../../../src/build/certificate-secrets.ts";
import { encodeData } from "../../../src/build/credentials.ts";
import { resources } from "../../../src/kube/resources.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { createAuthority, createLeaf, renewLeaf } from "../../../src/pki/issue.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import { admissionCases } from "./admission-cases.ts";
import { type Installation, installOperator } from "./least-privilege.ts";
import { buildOperatorProgram, type OperatorProcess, type OperatorProgram } from "./operator-process.ts";
import { send, submit, type Verdict } from "./submission.ts";
import { startWorld, type World } from "./world.ts";

let world: World;
let program: OperatorProgram;
let installation: Installation;
let operator: OperatorProcess;
let webhookPort: number;
let metricsFolder: string;
let metricsAuthority: KeyPair;

beforeAll(async () => {
  world = await startWorld();
  program = await buildOperatorProgram(world);
  webhookPort = await choosePort();
  metricsFolder = mkdtempSync(join(tmpdir(), "cnpg-ts-metrics-"));
  const validity = { now: Date.now(), durationDays: 1 };
  metricsAuthority = await createAuthority({ commonName: "metrics", organizationalUnit: "" }, validity);
  const leaf = { commonName: "localhost", usage: "server" as const, dnsNames: ["localhost"] };
  const pair = await createLeaf(metricsAuthority, leaf, validity);
  writeFileSync(join(metricsFolder, "tls.crt"), pair.certificate);
  writeFileSync(join(metricsFolder, "tls.key"), pair.privateKey);
  installation = await installOperator(world, { webhookPort });
  await startProgram();
});

afterAll(async () => {
  await operator?.stop();
  program?.remove();
  installation?.remove();
  if (metricsFolder) rmSync(metricsFolder, { recursive: true });
  await world?.stop();
});

/** Starts the operator and waits until the API server reaches its webhooks, by the authority that it has told. */
async function startProgram(): Promise<void> {
  // It watches a namespace without clusters: what is tried here is admission alone.
  const env = { OPERATOR_NAMESPACE: installation.namespace, METRICS_CERT_DIR: metricsFolder };
  operator = await program.start({ namespace: "none", env, kubeconfig: installation.kubeconfig, webhookPort });
  const isReached = async () => (await tryCluster()).status === 201;
  await waitFor("webhooks that the API server reaches", isReached, { timeoutMs: 90_000 });
}

function anObject(
  type: ResourceType<KubeObject>,
  spec: object,
  metadata: object = {},
): KubeObject & { metadata: { name: string } } {
  const place = type.namespaced ? { namespace: "default" } : {};
  const name = `good-${type.plural}`;
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: type.kind,
    metadata: { name, ...place, ...metadata },
    spec,
  } as never;
}

function tryCluster(spec: object = {}, metadata: object = {}): Promise<Verdict> {
  const type = resources.clusters as ResourceType<KubeObject>;
  return submit(world, type, { ...anObject(type, { storage: { size: "1Gi" }, ...spec }, metadata) });
}

describe.each(admissionCases)("$type.kind", ({ type, good, bad }) => {
  it("that is fine passes", async () => {
    expect(await submit(world, type, { ...anObject(type, good) })).toEqual({ status: 201, message: "", warnings: [] });
  });

  it.each(bad)("is refused: $says", async ({ spec = {}, metadata = {}, says }) => {
    const { status, message } = await submit(world, type, { ...anObject(type, { ...good, ...spec }, metadata) });
    expect([400, 422]).toContain(status);
    for (const text of says) expect(message).toContain(text);
  });
});

describe("the webhook configurations", () => {
  it("send exactly the kinds, operations and paths that clients of the original know, and refuse what is not judged", async () => {
    const [mutating, validating] = await Promise.all([
      world.api.get(resources.mutatingWebhookConfigurations, { name: "cnpg-mutating-webhook-configuration" }),
      world.api.get(resources.validatingWebhookConfigurations, { name: "cnpg-validating-webhook-configuration" }),
    ]);
    const webhooks = [...(mutating.webhooks ?? []), ...(validating.webhooks ?? [])];
    expect(webhooks.map((it) => it.name)).toEqual([
      ...["mbackup", "mcluster", "mdatabase", "mscheduledbackup"].map((it) => `${it}.cnpg.io`),
      ...["vbackup", "vcluster", "vdatabase", "vpooler", "vscheduledbackup"].map((it) => `${it}.cnpg.io`),
    ]);
    for (const { name, rules, failurePolicy, sideEffects, clientConfig, admissionReviewVersions } of webhooks) {
      const kind = name.slice(1, -".cnpg.io".length);
      const verb = name.startsWith("m") ? "mutate" : "validate";
      expect(clientConfig.service).toMatchObject({
        name: "cnpg-webhook-service",
        namespace: "cnpg-system",
        path: `/${verb}-postgresql-cnpg-io-v1-${kind}`,
      });
      expect([failurePolicy, sideEffects, admissionReviewVersions]).toEqual(["Fail", "None", ["v1"]]);
      expect(rules).toEqual([
        expect.objectContaining({
          apiGroups: ["postgresql.cnpg.io"],
          apiVersions: ["v1"],
          operations: ["CREATE", "UPDATE"],
          resources: [`${kind}s`],
        }),
      ]);
    }
  });
});

describe("changes", () => {
  /** Keeps an object, then tries it with another spec. */
  async function change(type: ResourceType<KubeObject>, name: string, before: object, after: object): Promise<Verdict> {
    const object = anObject(type, before, { name });
    expect(await submit(world, type, { ...object }, { keep: true })).toMatchObject({ status: 201 });
    const key = type.namespaced ? { namespace: "default", name } : { name };
    const live = (await world.api.get(type, key)) as KubeObject & { spec: object };
    return submit(world, type, { ...live, spec: { ...live.spec, ...after } }, { method: "PUT" });
  }

  it("of a cluster are judged against what it was, with the defaults that were written into it", async () => {
    const type = resources.clusters as ResourceType<KubeObject>;
    const shrunk = await change(type, "shrunk", { storage: { size: "2Gi" } }, { storage: { size: "1Gi" } });
    expect(shrunk.message).toContain("spec.storage");
    expect(shrunk.message).toContain("can't shrink existing storage from 2Gi to 1Gi");
    const live = await world.api.get(resources.clusters, { namespace: "default", name: "shrunk" });
    expect(live.spec.bootstrap?.initdb).toMatchObject({ database: "app", owner: "app" });
    expect(live.spec.imageName).toContain("postgresql:18");
  });

  it("of what is fixed once an object exists are refused for every kind that fixes something", async () => {
    const other = { cluster: { name: "other" } };
    const fixed: [ResourceType<KubeObject>, object, object, string][] = [
      [resources.backups as never, { cluster: { name: "c" } }, other, "BackupSpec is immutable once set"],
      [
        resources.scheduledBackups as never,
        { cluster: { name: "c" }, schedule: "0 0 0 * * *" },
        other,
        "cluster reference is immutable after creation",
      ],
      [
        resources.databases as never,
        { cluster: { name: "c" }, name: "app", owner: "app" },
        { name: "app2" },
        "name is immutable",
      ],
      [
        resources.poolers as never,
        { cluster: { name: "c" }, pgbouncer: {} },
        other,
        "cluster reference is immutable after creation",
      ],
      [
        resources.databaseRoles as never,
        { cluster: { name: "c" }, name: "writer" },
        { name: "reader" },
        "name is immutable",
      ],
      [
        resources.publications as never,
        { cluster: { name: "c" }, dbname: "app", name: "all", target: { allTables: true } },
        { dbname: "app2" },
        "dbname is immutable",
      ],
      [
        resources.subscriptions as never,
        { cluster: { name: "c" }, dbname: "app", name: "all", externalClusterName: "o", publicationName: "all" },
        { name: "some" },
        "name is immutable",
      ],
    ];
    for (const [type, before, after, says] of fixed) {
      expect((await change(type, "fixed", before, after)).message, type.kind).toContain(says);
    }
  });
});

describe("what a person is told", () => {
  it("without being refused comes as a warning", async () => {
    const type = resources.scheduledBackups as ResourceType<KubeObject>;
    const five = await submit(world, type, { ...anObject(type, { cluster: { name: "c" }, schedule: "0 0 * * *" }) });
    expect(five).toMatchObject({
      status: 201,
      warnings: [expect.stringContaining("usually six arguments are needed")],
    });
    const unitless = await tryCluster({ postgresql: { parameters: { shared_buffers: "128" } } });
    expect(unitless).toMatchObject({ status: 201, warnings: [expect.stringContaining("shared_buffers")] });
  });

  it("of the wrong shape is refused by the schema, which names the field", async () => {
    const shapeless = await tryCluster({ tablespaces: {} });
    expect(shapeless.status).toBe(422);
    expect(shapeless.message).toContain("spec.tablespaces");
  });

  it("who switches validation off is that nothing was checked", async () => {
    const annotations = { "cnpg.io/validation": "disabled" };
    const off = await tryCluster({ imageName: "example.org/postgresql:latest" }, { annotations });
    expect(off.status).toBe(201);
    expect(off.warnings.join()).toContain("validation");
  });

  it("with a key that stands twice in the text is which", async () => {
    const { metadata, spec } = anObject(resources.clusters as ResourceType<KubeObject>, {
      storage: { size: "1Gi" },
    }) as {
      metadata: object;
      spec?: object;
    };
    const twice = JSON.stringify(spec).replace(/^\{/, '{"instances":1,"instances":3,');
    const body = `{"apiVersion":"postgresql.cnpg.io/v1","kind":"Cluster","metadata":${JSON.stringify(metadata)},"spec":${twice}}`;
    const path = "/apis/postgresql.cnpg.io/v1/namespaces/default/clusters?fieldValidation=Strict&dryRun=All";
    const { status, message } = await send(world, "POST", path, body);
    expect(status).toBe(400);
    expect(message).toContain('duplicate field "spec.instances"');
    const secret =
      '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"username":"YQ==","username":"Yg=="}}';
    const doubled = await send(world, "POST", "/api/v1/namespaces/default/secrets?fieldValidation=Strict", secret);
    expect(doubled.status).toBe(400);
    expect(doubled.message).toContain('duplicate field "data.username"');
  });
});

describe("metrics of the operator", () => {
  it("are served by TLS alone once they are given a certificate", async () => {
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const url = `https://localhost:${operator.metricsPort}/metrics`;
      const call = get(url, { ca: metricsAuthority.certificate, agent: false, family: 4 }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      });
      call.on("error", reject);
    });
    expect(status).toBe(200);
    expect(text).toContain("controller_runtime_reconcile_total");
    await expect(fetch(`http://127.0.0.1:${operator.metricsPort}/metrics`)).rejects.toThrow();
  });
});

describe("an operator that is away", () => {
  /** Leaves the operator's own certificate as it would be three days before its end. */
  async function endCertificate(key: { namespace: string; name: string }): Promise<Secret> {
    const text = (secret: Secret, name: string) => secretText(secret, name) ?? "";
    const authority = await world.api.get(resources.secrets, { ...key, name: "cnpg-ca-secret" });
    const signer = { certificate: text(authority, "ca.crt"), privateKey: text(authority, "ca.key") };
    const host = `cnpg-webhook-service.${key.namespace}.svc`;
    const leaf = { commonName: host, usage: "server" as const, dnsNames: [host] };
    const before = text(await world.api.get(resources.secrets, key), "tls.key");
    const certificate = renewLeaf(signer, before, leaf, { now: Date.now(), durationDays: 3 });
    const body = { data: encodeData({ "tls.crt": certificate }) };
    return world.api.patch(resources.secrets, key, { type: "merge", body });
  }

  it("lets nothing past unjudged, holds up no other kind, and judges again once it is back", async () => {
    await operator.stop();
    const refused = await tryCluster();
    expect(refused.status).toBe(500);
    expect(refused.message).toContain("failed calling webhook");
    const catalogs = resources.imageCatalogs as ResourceType<KubeObject>;
    const images = [{ major: 17, image: "example.org/postgresql:17.2" }];
    expect(await submit(world, catalogs, { ...anObject(catalogs, { images }) })).toMatchObject({ status: 201 });
    const key = { namespace: installation.namespace, name: "cnpg-webhook-cert" };
    const ending = await endCertificate(key);
    await startProgram();
    const renewed = await world.api.get(resources.secrets, key);
    expect(renewed.data?.["tls.crt"]).not.toBe(ending.data?.["tls.crt"]);
    expect(renewed.data?.["tls.key"]).toBe(ending.data?.["tls.key"]);
    expect((await tryCluster({ storage: { size: "much" } })).message).toContain("spec.storage.size");
  });
});
