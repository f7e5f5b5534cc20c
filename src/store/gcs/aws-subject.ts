// Who a pod is to Amazon, as Google's exchange of tokens wants to have it: a request to Amazon's token service, signed but not sent.
import { askIssuer, parseJson, tokenFailure } from "../token-source.ts";
import { type AwsKeys, signAwsRequest } from "./aws-signature.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where an external account that comes from Amazon finds what it needs; empty texts for what is not named. */
export interface AwsSource {
  /** Names the machine's zone. */
  regionUrl: string;
  /** Names the machine's role, and below it the role's keys. */
  keysUrl: string;
  /** Gives the token without which the second version of the metadata service answers nothing. */
  sessionUrl: string;
  /** The request that proves who asks, with `{region}` in it. */
  verificationUrl: string;
}

/** The subject token for an audience; keys and region of the environment come before those of the machine. */
export async function awsSubjectToken(
  source: AwsSource,
  audience: string,
  environment: Environment,
  nowMs: number,
): Promise<string> {
  const known = readKeys(environment);
  const named = environment["AWS_REGION"] || environment["AWS_DEFAULT_REGION"];
  const session = known && named ? {} : await openSession(source);
  const region = named || (await readRegion(source, session));
  const keys = known ?? (await readMachineKeys(source, session));
  const url = new URL(source.verificationUrl.replace("{region}", region));
  const method = "POST";
  const headers = { "x-goog-cloud-target-resource": audience };
  const signed = signAwsRequest({ method, url, headers, region, service: "sts", nowMs }, keys);
  const list = Object.entries(signed).map(([key, value]) => ({ key, value }));
  return encodeURIComponent(JSON.stringify({ url: url.href, method, headers: list }));
}

function readKeys(environment: Environment): AwsKeys | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: environment["AWS_SESSION_TOKEN"] };
}

async function openSession({ sessionUrl: url }: AwsSource): Promise<Record<string, string>> {
  if (url === "") return {};
  const headers = { "x-aws-ec2-metadata-token-ttl-seconds": "300" };
  return { "x-aws-ec2-metadata-token": (await askIssuer({ method: "PUT", url, headers })).trim() };
}

/** The service names the zone, which is the region and a letter. */
async function readRegion({ regionUrl: url }: AwsSource, headers: Record<string, string>): Promise<string> {
  if (url === "") throw tokenFailure("denied", "neither AWS_REGION nor region_url of the credential_source is set");
  return (await askIssuer({ method: "GET", url, headers })).trim().slice(0, -1);
}

async function readMachineKeys({ keysUrl: url }: AwsSource, headers: Record<string, string>): Promise<AwsKeys> {
  if (url === "") throw tokenFailure("denied", "neither AWS_ACCESS_KEY_ID nor url of the credential_source is set");
  const role = (await askIssuer({ method: "GET", url, headers })).trim();
  const text = await askIssuer({ method: "GET", url: `${url}/${role}`, headers });
  const answer = parseJson(text, "the machine's metadata service");
  const [accessKeyId, secretAccessKey, sessionToken] = ["AccessKeyId", "SecretAccessKey", "Token"].map((name) =>
    typeof answer[name] === "string" ? answer[name] : "",
  );
  if (!accessKeyId || !secretAccessKey) throw tokenFailure("denied", `the role ${role} of the machine has no keys`);
  return { accessKeyId, secretAccessKey, sessionToken };
}
