import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { googleIdentity } from "../../../src/store/gcs/google-identity.ts";
import { startTokenServer, type TokenServer } from "../../support/token-servers.ts";

let amazon: TokenServer;

beforeAll(async () => {
  amazon = await startTokenServer();
});
afterAll(() => amazon?.stop());
afterEach(() => {
  amazon.asked.length = 0;
});

const account = () => ({
  type: "external_account",
  audience: "//iam/pool",
  subject_token_type: "urn:ietf:params:aws:token-type:aws4_request",
  token_url: `${amazon.url}/sts`,
  credential_source: {
    environment_id: "aws1",
    region_url: `${amazon.url}/zone`,
    url: `${amazon.url}/roles`,
    imdsv2_session_token_url: `${amazon.url}/session`,
    regional_cred_verification_url: "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
  },
});

/** Answers as the machine's metadata service and as Google's exchange; `subject` hears what is to be exchanged. */
function answerAll(subject: (request: { url: string; headers: Record<string, string> }) => void): void {
  amazon.answer = ({ method, path, headers, form }) => {
    if (method === "PUT" && path === "/session") return { body: "the-session" };
    if (path === "/sts") {
      const text = decodeURIComponent(form.get("subject_token") ?? "");
      const { url, headers: list } = JSON.parse(text) as { url: string; headers: { key: string; value: string }[] };
      subject({ url, headers: Object.fromEntries(list.map(({ key, value }) => [key, value])) });
      return { body: { access_token: "of-amazon", expires_in: 3599 } };
    }
    if (headers["x-aws-ec2-metadata-token"] !== "the-session") return undefined;
    if (path === "/zone") return { body: "eu-central-1b" };
    if (path === "/roles") return { body: "backup" };
    return path === "/roles/backup"
      ? { body: { AccessKeyId: "AKID", SecretAccessKey: "secret", Token: "session" } }
      : undefined;
  };
}

async function tokenOf(environment: Record<string, string>): Promise<string> {
  const identity = await googleIdentity(JSON.stringify(account()), environment);
  return (await identity.fetch()).token;
}

test("a machine at Amazon proves who it is by a signed request, and gets a token of Google's for it", async () => {
  const subjects: { url: string; headers: Record<string, string> }[] = [];
  answerAll((subject) => subjects.push(subject));
  expect(await tokenOf({})).toBe("of-amazon");
  expect(subjects).toEqual([
    {
      url: "https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
      headers: {
        host: "sts.eu-central-1.amazonaws.com",
        "x-amz-date": expect.stringMatching(/^\d{8}T\d{6}Z$/),
        "x-amz-security-token": "session",
        "x-goog-cloud-target-resource": "//iam/pool",
        authorization: expect.stringMatching(
          /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-central-1\/sts\/aws4_request, SignedHeaders=host;/,
        ),
      },
    },
  ]);
});

test("keys and region of the environment leave the machine unasked", async () => {
  const subjects: { url: string }[] = [];
  answerAll((subject) => subjects.push(subject));
  const environment = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "s", AWS_DEFAULT_REGION: "us-west-2" };
  expect(await tokenOf(environment)).toBe("of-amazon");
  expect(subjects[0]?.url).toContain("https://sts.us-west-2.amazonaws.com/");
  expect(amazon.asked.map(({ path }) => path)).toEqual(["/sts"]);
});

test("a machine without a role is denied, with the reason", async () => {
  amazon.answer = ({ path }) => (path === "/session" ? { body: "the-session" } : undefined);
  await expect(tokenOf({ AWS_REGION: "us-west-2" })).rejects.toMatchObject({
    kind: "denied",
    message: expect.stringContaining("/roles answered HTTP 404"),
  });
});
