// Access tokens of Azure without a stored secret, from what the environment of the pod says: a service principal, the token that
// Kubernetes projects for workload identity, or the metadata service of the machine.
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { readProxy } from "../proxy.ts";
import { signAssertion } from "../signed-assertion.ts";
import { askIssuer, type FetchToken, readToken, tokenFailure } from "../token-source.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const resource = "https://storage.azure.com/";
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** `managed`: workload identity, else the machine's. `default`: a service principal in the environment before these. */
export function azureTokens(identity: "managed" | "default", environment: Environment): FetchToken {
  const principal = identity === "default" ? servicePrincipal(environment) : undefined;
  return principal ?? workloadIdentity(environment) ?? machineIdentity(environment);
}

function servicePrincipal(environment: Environment): FetchToken | undefined {
  const { AZURE_CLIENT_SECRET: secret, AZURE_CLIENT_CERTIFICATE_PATH: path } = environment;
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client } = environment;
  if (!tenant || !client || (!secret && !path)) return undefined;
  if (secret) return () => askDirectory(environment, { client_secret: secret });
  return async () => {
    const pem = await readText(path ?? "", "AZURE_CLIENT_CERTIFICATE_PATH");
    return askDirectory(environment, {
      client_assertion_type: assertionType,
      client_assertion: certificateAssertion(pem, client, tokenUrl(environment)),
    });
  };
}

function workloadIdentity(environment: Environment): FetchToken | undefined {
  const { AZURE_FEDERATED_TOKEN_FILE: file, AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: client } = environment;
  if (!file || !tenant || !client) return undefined;
  return async () => {
    // Replaced by the kubelet before it ends, so it is read each time.
    const assertion = await readText(file, "AZURE_FEDERATED_TOKEN_FILE");
    return askDirectory(environment, { client_assertion_type: assertionType, client_assertion: assertion.trim() });
  };
}

function machineIdentity(environment: Environment): FetchToken {
  return async () => {
    const { AZURE_POD_IDENTITY_AUTHORITY_HOST: host, AZURE_CLIENT_ID: client } = environment;
    const url = new URL("/metadata/identity/oauth2/token", host || "http://169.254.169.254");
    url.searchParams.set("api-version", "2018-02-01");
    url.searchParams.set("resource", resource);
    if (client) url.searchParams.set("client_id", client);
    const text = await askIssuer({ method: "GET", url: url.href, headers: { metadata: "true" } });
    return readToken(text, "the machine's identity service");
  };
}

async function askDirectory(environment: Environment, proof: Readonly<Record<string, string>>) {
  const form = {
    grant_type: "client_credentials",
    client_id: environment["AZURE_CLIENT_ID"] ?? "",
    scope: `${resource}.default`,
    ...proof,
  };
  const request = { method: "POST", url: tokenUrl(environment), form, proxy: readProxy(environment) } as const;
  return readToken(await askIssuer(request), "the directory");
}

function tokenUrl({ AZURE_AUTHORITY_HOST: host, AZURE_TENANT_ID: tenant = "" }: Environment): string {
  const authority = (host || "https://login.microsoftonline.com").replace(/\/+$/, "");
  const base = authority.includes("://") ? authority : `https://${authority}`;
  return `${base}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`;
}

function certificateAssertion(pem: string, client: string, audience: string): string {
  let thumbprint: string;
  try {
    thumbprint = createHash("sha1").update(new X509Certificate(pem).raw).digest("base64url");
  } catch (error) {
    throw tokenFailure("denied", "AZURE_CLIENT_CERTIFICATE_PATH names no file with a certificate in PEM form", error);
  }
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    aud: audience,
    iss: client,
    sub: client,
    jti: `${now}-${thumbprint}`,
    nbf: now - 60,
    exp: now + 600,
  };
  return signAssertion({ x5t: thumbprint }, claims, pem);
}

async function readText(path: string, variable: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw tokenFailure("denied", `the file that ${variable} names cannot be read: ${reason}`, error);
  }
}
