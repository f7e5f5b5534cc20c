// Access tokens of Google: from a key file, from a token of another issuer that it describes, or from the metadata server.
import { readFile } from "node:fs/promises";
import { readProxy, type StoreProxy } from "../proxy.ts";
import { signAssertion } from "../signed-assertion.ts";
import { type AccessToken, askIssuer, type FetchToken, parseJson, readToken, tokenFailure } from "../token-source.ts";
import { awsSubjectToken } from "./aws-subject.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Credentials = Readonly<Record<string, unknown>>;

const scope = "https://www.googleapis.com/auth/devstorage.full_control";
const cloudScope = "https://www.googleapis.com/auth/cloud-platform";
const defaultTokenUrl = "https://oauth2.googleapis.com/token";

/** What the file with credentials says beside how to get a token. */
export interface GoogleIdentity {
  fetch: FetchToken;
  /** Project that a bucket would be made in. */
  project(): Promise<string>;
}

/** Reads the JSON of credentials; without any, the environment tells, in the order in which Google's libraries look. */
export async function googleIdentity(json: string | undefined, environment: Environment): Promise<GoogleIdentity> {
  const file = environment["GOOGLE_APPLICATION_CREDENTIALS"];
  const text = json ?? (file ? await readCredentials(file) : undefined);
  const named = environment["GOOGLE_CLOUD_PROJECT"];
  if (text === undefined) {
    return { fetch: () => machineToken(environment), project: async () => named || machineProject(environment) };
  }
  const credentials = parseJson(text, "the file with Google's credentials");
  const fetch = chooseFetch(credentials, environment);
  const own = word(credentials, "project_id") || word(credentials, "quota_project_id");
  return { fetch, project: async () => own || named || "" };
}

function chooseFetch(credentials: Credentials, environment: Environment): FetchToken {
  switch (credentials["type"]) {
    case "service_account":
      return () => serviceAccountToken(credentials, readProxy(environment));
    case "authorized_user":
      return () => refreshedToken(credentials, readProxy(environment));
    case "external_account":
      return () => federatedToken(credentials, environment);
    case "impersonated_service_account":
      return async () => {
        const source = credentials["source_credentials"] as Credentials | undefined;
        const url = word(credentials, "service_account_impersonation_url");
        return impersonate(url, await chooseFetch(source ?? {}, environment)(), readProxy(environment));
      };
    default:
      throw tokenFailure("denied", `credentials of the type ${JSON.stringify(credentials["type"])} are not known`);
  }
}

async function serviceAccountToken(credentials: Credentials, proxy: StoreProxy | undefined): Promise<AccessToken> {
  const url = word(credentials, "token_uri") || defaultTokenUrl;
  const [email, key] = [word(credentials, "client_email"), word(credentials, "private_key")];
  if (email === "" || key === "") {
    throw tokenFailure("denied", "the key of the service account lacks client_email or private_key");
  }
  const now = Math.floor(Date.now() / 1000);
  const id = word(credentials, "private_key_id");
  const claims = { iss: email, scope, aud: url, iat: now, exp: now + 3600 };
  const assertion = signAssertion(id === "" ? {} : { kid: id }, claims, key);
  const form = { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion };
  return readToken(await askIssuer({ method: "POST", url, form, proxy }), "the issuer of the service account's tokens");
}

async function refreshedToken(credentials: Credentials, proxy: StoreProxy | undefined): Promise<AccessToken> {
  const form = {
    grant_type: "refresh_token",
    client_id: word(credentials, "client_id"),
    client_secret: word(credentials, "client_secret"),
    refresh_token: word(credentials, "refresh_token"),
  };
  const url = word(credentials, "token_uri") || defaultTokenUrl;
  return readToken(await askIssuer({ method: "POST", url, form, proxy }), "the issuer of the user's tokens");
}

/** Workload identity federation: the pod's own token for one of Google. */
async function federatedToken(credentials: Credentials, environment: Environment): Promise<AccessToken> {
  const impersonation = word(credentials, "service_account_impersonation_url");
  const audience = word(credentials, "audience");
  const source = (credentials["credential_source"] ?? {}) as Credentials;
  const form = {
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    audience,
    scope: impersonation === "" ? scope : cloudScope,
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    subject_token_type: word(credentials, "subject_token_type"),
    subject_token: word(source, "environment_id").startsWith("aws")
      ? await amazonToken(source, audience, environment)
      : await subjectToken(source),
  };
  const proxy = readProxy(environment);
  const url = word(credentials, "token_url") || "https://sts.googleapis.com/v1/token";
  const token = readToken(await askIssuer({ method: "POST", url, form, proxy }), "the exchange of tokens");
  return impersonation === "" ? token : impersonate(impersonation, token, proxy);
}

/** Amazon's own identity of the pod or machine. */
function amazonToken(source: Credentials, audience: string, environment: Environment): Promise<string> {
  const id = word(source, "environment_id");
  if (id !== "aws1") throw tokenFailure("denied", `credential_source of the kind ${JSON.stringify(id)} is not known`);
  const places = {
    regionUrl: word(source, "region_url"),
    keysUrl: word(source, "url"),
    sessionUrl: word(source, "imdsv2_session_token_url"),
    verificationUrl: word(source, "regional_cred_verification_url"),
  };
  return awsSubjectToken(places, audience, environment, Date.now());
}

async function subjectToken(source: Credentials): Promise<string> {
  const [file, url] = [word(source, "file"), word(source, "url")];
  const headers = (source["headers"] ?? {}) as Record<string, string>;
  const text =
    file !== ""
      ? await readCredentials(file)
      : url !== ""
        ? await askIssuer({ method: "GET", url, headers })
        : undefined;
  if (text === undefined) {
    throw tokenFailure("denied", "credential_source of the external account names neither a file nor a url");
  }
  const format = (source["format"] ?? {}) as Credentials;
  if (format["type"] !== "json") return text.trim();
  const field = word(format, "subject_token_field_name");
  const token = parseJson(text, "the credential_source")[field];
  if (typeof token === "string") return token;
  throw tokenFailure("denied", `the credential_source has no field ${JSON.stringify(field)}`);
}

async function impersonate(url: string, { token }: AccessToken, proxy: StoreProxy | undefined): Promise<AccessToken> {
  const headers = { authorization: `Bearer ${token}` };
  const json = { scope: [scope], lifetime: "3600s" };
  const text = await askIssuer({ method: "POST", url, headers, json, proxy });
  const answer = parseJson(text, "the answer to the impersonation");
  const [accessToken, expires] = [word(answer, "accessToken"), Date.parse(word(answer, "expireTime"))];
  if (accessToken === "") throw tokenFailure("denied", "the impersonation gave no accessToken");
  return { token: accessToken, expiresAtMs: Number.isNaN(expires) ? Date.now() + 3_600_000 : expires };
}

async function machineToken(environment: Environment): Promise<AccessToken> {
  const text = await askMetadata("instance/service-accounts/default/token", environment);
  return readToken(text, "the metadata server");
}

async function machineProject(environment: Environment): Promise<string> {
  return (await askMetadata("project/project-id", environment)).trim();
}

function askMetadata(path: string, { GCE_METADATA_HOST: host }: Environment): Promise<string> {
  const url = `http://${host || "metadata.google.internal"}/computeMetadata/v1/${path}`;
  return askIssuer({ method: "GET", url, headers: { "metadata-flavor": "Google" } });
}

async function readCredentials(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw tokenFailure("denied", `a file with Google's credentials cannot be read: ${reason}`, error);
  }
}

function word(credentials: Credentials, name: string): string {
  const value = credentials[name];
  return typeof value === "string" ? value : "";
}
