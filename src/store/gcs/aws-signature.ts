import { createHash, createHmac } from "node:crypto";

export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

export interface AwsRequest {
  method: "GET" | "POST";
  url: URL;
  /** To be signed beside `host` and the time; names in lower case. */
  headers?: Readonly<Record<string, string>>;
  region: string;
  service: string;
  nowMs: number;
}

/** Headers of a request without a body, `authorization` among them, signed by the fourth version of Amazon's signatures. */
export function signAwsRequest(request: AwsRequest, keys: AwsKeys): Record<string, string> {
  const { method, url, region, service, nowMs } = request;
  const time = `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
  const headers: Record<string, string> = {
    host: url.host,
    "x-amz-date": time,
    ...(keys.sessionToken ? { "x-amz-security-token": keys.sessionToken } : {}),
    ...request.headers,
  };
  const names = Object.keys(headers).sort();
  const signed = names.join(";");
  const query = [...url.searchParams].map((pair) => pair.map(encodeURIComponent).join("=")).sort();
  const lines = names.map((name) => `${name}:${(headers[name] ?? "").trim()}\n`);
  const canonical = [method, url.pathname, query.join("&"), lines.join(""), signed, sha256("")].join("\n");
  const scope = [time.slice(0, 8), region, service, "aws4_request"];
  const text = ["AWS4-HMAC-SHA256", time, scope.join("/"), sha256(canonical)].join("\n");
  const key = scope.reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${keys.secretAccessKey}`);
  const signature = hmac(key, text).toString("hex");
  const credential = [keys.accessKeyId, ...scope].join("/");
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signed}, Signature=${signature}`;
  return { ...headers, authorization };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
