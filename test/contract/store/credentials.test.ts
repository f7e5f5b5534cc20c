import { generateKeyPairSync, verify } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { buildConnection, type StoreConfiguration } from "../../../src/barman/store-configuration.ts";
import { type ObjectStore, ObjectStoreError } from "../../../src/ports/object-store.ts";
import { createAzureStore } from "../../../src/store/azure/azure-store.ts";
import { createObjectStore, type StoreEnvironment } from "../../../src/store/create-store.ts";
import { type AzureServer, startAzureServer } from "../../support/azure-server.ts";
import { type GcsServer, startGcsServer } from "../../support/gcs-server.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";
import { azureToken, startTokenServer, type TokenServer } from "../../support/token-servers.ts";
import { type FaultyS3, startFaultyS3 } from "./faulty-s3.ts";

let folder: string;
let authority: TestAuthority;
let azure: AzureServer;
let gcs: GcsServer;
let gate: FaultyS3;
let issuer: TokenServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "credentials-"));
  authority = await createTestAuthority();
  [azure, gcs] = await Promise.all([startAzureServer(await authority.issue("localhost")), startGcsServer()]);
  gate = await startFaultyS3(gcs.port);
  issuer = await startTokenServer();
  const { account, endpoint, key } = azure;
  const options = { account, endpoint, container: "archive", authorization: { kind: "key" as const, key } };
  const owner = createAzureStore({ ...options, ca: authority.ca });
  await owner.checkBucket({ create: true });
  owner.close();
  // The first run on a machine builds and installs the servers.
}, 900_000);

afterAll(async () => {
  await Promise.all([azure?.stop(), gcs?.stop(), gate?.stop(), issuer?.stop(), authority?.remove()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

afterEach(() => {
  vi.unstubAllEnvs();
  gate.fault = () => "pass";
  issuer.answer = () => undefined;
  issuer.asked.length = 0;
});

async function open(
  configuration: StoreConfiguration,
  secrets: Readonly<Record<string, string>> = {},
  environment: StoreEnvironment = {},
): Promise<ObjectStore> {
  const connection = buildConnection(configuration, ({ key }) => secrets[key]);
  if ("error" in connection) throw new Error(connection.error);
  return createObjectStore(connection, environment);
}

/** Writes, reads and removes one object. */
async function use(store: ObjectStore): Promise<void> {
  await store.put("a/b", [Buffer.from("x")], { ifAbsent: true });
  expect(await store.head("a/b")).toMatchObject({ size: 1 });
  await store.remove(["a/b"]);
  store.close();
}

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: unknown) => (error instanceof ObjectStoreError ? error.kind : error),
  );

const file = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};

describe("azure", () => {
  const secret = (key: string) => ({ name: "azure", key });
  const configuration = (azureCredentials: NonNullable<StoreConfiguration["azureCredentials"]>) => ({
    destinationPath: `${azure.endpoint}/archive/path`,
    endpointCA: secret("ca"),
    azureCredentials,
  });
  const openAzure = (
    credentials: NonNullable<StoreConfiguration["azureCredentials"]>,
    secrets: Readonly<Record<string, string>> = {},
    environment: StoreEnvironment = {},
  ) => open(configuration(credentials), { ca: authority.ca, ...secrets }, environment);

  test("a connection string, and an account with its key, are let in", async () => {
    await use(await openAzure({ connectionString: secret("c") }, { c: azure.connectionString }));
    const keys = { storageAccount: secret("a"), storageKey: secret("k") };
    await use(await openAzure(keys, { a: azure.account, k: azure.key }));
  });

  test("a wrong key is denied, and an endpoint whose authority is not named is not reached", async () => {
    const keys = { storageAccount: secret("a"), storageKey: secret("k") };
    const wrong = await openAzure(keys, { a: azure.account, k: Buffer.from("no").toString("base64") });
    expect(await kindOf(wrong.head("x"))).toBe("denied");
    const { endpointCA: _, ...withoutAuthority } = configuration(keys);
    const untrusting = await open(withoutAuthority, {
      a: azure.account,
      k: azure.key,
    });
    expect(await kindOf(untrusting.head("x"))).toBe("unavailable");
    for (const store of [wrong, untrusting]) store.close();
  });

  test("a shared access signature is let in as far as it goes", async () => {
    const sas = { storageAccount: secret("a"), storageSasToken: secret("s") };
    const { accountSignature } = await import("../../support/azure-signature.ts");
    await use(await openAzure(sas, { a: azure.account, s: accountSignature(azure, "rwdlact") }));
    const reader = await openAzure(sas, { a: azure.account, s: `?${accountSignature(azure, "rl")}` });
    expect(await kindOf(reader.put("x", [Buffer.from("x")]))).toBe("denied");
    expect(await reader.head("x")).toBeUndefined();
    reader.close();
  });

  const token = (subject: string) => ({ body: { access_token: azureToken(subject), expires_in: 3600 } });

  test("the machine's identity is asked once for many calls", async () => {
    issuer.answer = ({ path, headers }) =>
      path === "/metadata/identity/oauth2/token" && headers["metadata"] === "true" ? token("machine") : undefined;
    const environment = { AZURE_POD_IDENTITY_AUTHORITY_HOST: issuer.url };
    // The values of a Secret beside it are not asked for: nobody grants them.
    await use(await openAzure({ inheritFromAzureAD: true, storageKey: secret("none") }, {}, environment));
    expect(issuer.asked).toHaveLength(1);
    expect(issuer.asked[0]?.query.get("resource")).toBe("https://storage.azure.com/");
  });

  test("workload identity trades the pod's token, read anew each time", async () => {
    const tokenFile = await file("federated", "pod-token\n");
    issuer.answer = ({ path, form }) =>
      path === "/tenant/oauth2/v2.0/token" && form.get("client_assertion") === "pod-token" ? token("pod") : undefined;
    const environment = {
      AZURE_AUTHORITY_HOST: `${issuer.url}/`,
      AZURE_FEDERATED_TOKEN_FILE: tokenFile,
      AZURE_TENANT_ID: "tenant",
      AZURE_CLIENT_ID: "client",
    };
    for (const credentials of [{ inheritFromAzureAD: true }, { useDefaultAzureCredentials: true }]) {
      await use(await openAzure(credentials, {}, environment));
    }
    expect(issuer.asked.map(({ form }) => form.get("client_id"))).toEqual(["client", "client"]);
    expect(issuer.asked[0]?.form.get("scope")).toBe("https://storage.azure.com/.default");
  });

  test("default credentials are those of a service principal in the environment, by secret or certificate", async () => {
    const principal = { AZURE_AUTHORITY_HOST: issuer.url, AZURE_TENANT_ID: "tenant", AZURE_CLIENT_ID: "client" };
    issuer.answer = ({ form }) => (form.get("client_secret") === "s3cret" ? token("principal") : undefined);
    const bySecret = { ...principal, AZURE_CLIENT_SECRET: "s3cret" };
    await use(await openAzure({ useDefaultAzureCredentials: true }, {}, bySecret));

    const { cert, key } = await rsaCertificate(folder);
    issuer.answer = ({ form }) => (verified(form.get("client_assertion") ?? "", cert) ? token("principal") : undefined);
    const path = await file("principal.pem", `${key}\n${cert}`);
    await use(
      await openAzure({ useDefaultAzureCredentials: true }, {}, { ...principal, AZURE_CLIENT_CERTIFICATE_PATH: path }),
    );
  });

  test("an identity that is refused is denied, one that does not answer unavailable; nothing says that the object is not there", async () => {
    const environment = { AZURE_POD_IDENTITY_AUTHORITY_HOST: issuer.url };
    issuer.answer = () => ({ status: 400, body: { error: "invalid_request", error_description: "no identity" } });
    const refused = await openAzure({ inheritFromAzureAD: true }, {}, environment);
    await expect(refused.head("x")).rejects.toMatchObject({
      kind: "denied",
      message: expect.stringMatching(/^HEAD https:.*no access token: .*HTTP 400 invalid_request: no identity/),
    });
    issuer.answer = () => ({ status: 500, body: {} });
    expect(await kindOf(refused.head("x"))).toBe("unavailable");
    refused.close();
  });
});

describe("gcs", () => {
  const configuration = (googleCredentials: NonNullable<StoreConfiguration["googleCredentials"]>) => ({
    destinationPath: "gs://archive/path",
    endpointURL: gate.endpoint,
    googleCredentials,
  });
  const applicationCredentials = { name: "google", key: "json" };
  const openKey = (json: object) => open(configuration({ applicationCredentials }), { json: JSON.stringify(json) });

  /** Lets nobody in but those with the token. */
  function guard(token: string): void {
    gate.fault = (incoming, outgoing) => {
      if (incoming.headers.authorization === `Bearer ${token}`) return "pass";
      outgoing.writeHead(401, { "content-type": "application/json" });
      outgoing.end(JSON.stringify({ error: { code: 401, message: "Invalid Credentials", errors: [] } }));
      return "answered";
    };
  }

  beforeAll(async () => {
    const store = await open(
      { destinationPath: "gs://archive", googleCredentials: { gkeEnvironment: true } },
      {},
      {
        STORAGE_EMULATOR_HOST: gcs.endpoint.replace("http://", ""),
      },
    );
    await store.checkBucket({ create: true });
    store.close();
  });

  test("a service account's key signs for a token", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    guard("of-account");
    issuer.answer = ({ form }) =>
      verified(form.get("assertion") ?? "", publicKey.export({ type: "spki", format: "pem" }) as string)
        ? { body: { access_token: "of-account", expires_in: 3599 } }
        : undefined;
    const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    await use(
      await openKey({
        type: "service_account",
        client_email: "a@b",
        private_key: key,
        private_key_id: "1",
        token_uri: `${issuer.url}/token`,
        project_id: "p",
      }),
    );
    expect(issuer.asked).toHaveLength(1);
  });

  test("a machine's account is asked of the metadata server, and again once its token is refused", async () => {
    let round = 0;
    issuer.answer = ({ path, headers }) =>
      path.endsWith("/service-accounts/default/token") && headers["metadata-flavor"] === "Google"
        ? { body: { access_token: `of-machine-${++round}`, expires_in: 3599 } }
        : undefined;
    const environment = { GCE_METADATA_HOST: issuer.url.replace("http://", "") };
    const store = await open(configuration({ gkeEnvironment: true }), {}, environment);
    guard("of-machine-1");
    await store.head("a");
    guard("of-machine-2");
    await use(store);
    expect(round).toBe(2);
  });

  test("a pod's own token is exchanged, and a service account spoken for", async () => {
    const subject = await file("subject", JSON.stringify({ token: "pod-token" }));
    guard("of-impersonated");
    issuer.answer = ({ path, form, headers, body }) => {
      if (path === "/sts" && form.get("subject_token") === "pod-token" && form.get("audience") === "//iam/pool") {
        return { body: { access_token: "federated", expires_in: 3599 } };
      }
      if (path !== "/impersonate" || headers.authorization !== "Bearer federated") return undefined;
      expect(JSON.parse(body).scope).toHaveLength(1);
      return { body: { accessToken: "of-impersonated", expireTime: new Date(Date.now() + 3_600_000).toISOString() } };
    };
    await use(
      await openKey({
        type: "external_account",
        audience: "//iam/pool",
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
        token_url: `${issuer.url}/sts`,
        service_account_impersonation_url: `${issuer.url}/impersonate`,
        credential_source: { file: subject, format: { type: "json", subject_token_field_name: "token" } },
      }),
    );
  });

  test("a user's refresh token is traded", async () => {
    guard("of-user");
    issuer.answer = ({ form }) =>
      form.get("refresh_token") === "r" ? { body: { access_token: "of-user", expires_in: 3599 } } : undefined;
    const user = { type: "authorized_user", client_id: "c", client_secret: "s", refresh_token: "r" };
    await use(await openKey({ ...user, token_uri: `${issuer.url}/token` }));
  });

  test("credentials that nobody understands, and a token that stays refused, are named", async () => {
    await expect(openKey({ type: "password" })).rejects.toThrow('credentials of the type "password" are not known');
    guard("another");
    issuer.answer = () => ({ body: { access_token: "stale", expires_in: 3599 } });
    const environment = { GCE_METADATA_HOST: issuer.url.replace("http://", "") };
    const store = await open(configuration({ gkeEnvironment: true }), {}, environment);
    expect(await kindOf(store.head("a"))).toBe("denied");
    store.close();
  });
});

describe("s3 by the role of the environment", () => {
  const configuration = { destinationPath: "s3://archive/path", s3Credentials: { inheritFromIAMRole: true } };

  /** A bucket that is empty, and a note of who asked for it. */
  async function listAs(environment: Readonly<Record<string, string>>): Promise<Record<string, unknown>> {
    for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"]) {
      vi.stubEnv(name, undefined);
    }
    for (const [name, value] of Object.entries({ HOME: folder, ...environment })) vi.stubEnv(name, value);
    let seen: Record<string, unknown> = {};
    gate.fault = (incoming, outgoing) => {
      seen = {
        key: /Credential=([^/]+)\/\d+\/([^/]+)\//
          .exec(incoming.headers.authorization ?? "")
          ?.slice(1, 3)
          .join(" "),
        token: incoming.headers["x-amz-security-token"],
      };
      outgoing.writeHead(200, { "content-type": "application/xml" });
      outgoing.end('<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
      return "answered";
    };
    const credentials = { ...configuration.s3Credentials, region: { name: "aws", key: "region" } };
    const asked = { ...configuration, endpointURL: gate.endpoint, s3Credentials: credentials };
    const store = await open(asked, { region: "eu-west-7" }, process.env);
    expect(await store.checkBucket()).toBe("present");
    store.close();
    return seen;
  }

  const expiration = new Date(Date.now() + 3_600_000).toISOString();

  test("web identity", async () => {
    const tokenFile = await file("web-identity", "pod-token");
    issuer.answer = ({ form }) =>
      form.get("Action") === "AssumeRoleWithWebIdentity" && form.get("WebIdentityToken") === "pod-token"
        ? {
            type: "text/xml",
            body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>web-session</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
          }
        : undefined;
    const seen = await listAs({
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_ROLE_ARN: "arn:aws:iam::1:role/archive",
      AWS_ENDPOINT_URL_STS: issuer.url,
      AWS_REGION: "eu-west-1",
    });
    // The region is that of the configuration, also with a role.
    expect(seen).toEqual({ key: "WEB eu-west-7", token: "web-session" });
  });

  test("the container's credentials", async () => {
    const tokenFile = await file("pod-identity", "pod-token");
    issuer.answer = ({ path, headers }) =>
      path === "/v1/credentials" && headers.authorization === "pod-token"
        ? { body: { AccessKeyId: "POD", SecretAccessKey: "s", Token: "pod-session", Expiration: expiration } }
        : undefined;
    const seen = await listAs({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${issuer.url}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
    });
    expect(seen).toEqual({ key: "POD eu-west-7", token: "pod-session" });
  });

  test("the machine's metadata, by its second version", async () => {
    issuer.answer = ({ method, path, headers }) => {
      if (method === "PUT" && path === "/latest/api/token") return { body: "imds-token", type: "text/plain" };
      if (headers["x-aws-ec2-metadata-token"] !== "imds-token") return { status: 401, body: "" };
      if (path === "/latest/meta-data/iam/security-credentials/") return { body: "role", type: "text/plain" };
      if (path !== "/latest/meta-data/iam/security-credentials/role") return undefined;
      return {
        body: {
          Code: "Success",
          AccessKeyId: "MACHINE",
          SecretAccessKey: "s",
          Token: "machine-session",
          Expiration: expiration,
        },
      };
    };
    const seen = await listAs({ AWS_EC2_METADATA_SERVICE_ENDPOINT: issuer.url });
    expect(seen).toEqual({ key: "MACHINE eu-west-7", token: "machine-session" });
  });
});

/** Whether a token was signed by the key of that certificate or public key. */
function verified(token: string, pem: string): boolean {
  const [head = "", claims = "", signature = ""] = token.split(".");
  return verify("sha256", Buffer.from(`${head}.${claims}`), pem, Buffer.from(signature, "base64url"));
}

async function rsaCertificate(where: string): Promise<{ cert: string; key: string }> {
  const { execFile } = await import("node:child_process");
  const { promisify } = await import("node:util");
  const { readFile } = await import("node:fs/promises");
  const [key, cert] = [join(where, "rsa.key"), join(where, "rsa.crt")];
  const subject = ["-subj", "/CN=principal", "-days", "1"];
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert],
    ...subject,
  ]);
  return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
}
