import { createHmac } from "node:crypto";
import type { HttpRequest } from "../http-client.ts";

/** Headers that stand in the text to sign by their place, whether a request has them or not. */
const placed = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-md5",
  "content-type",
  "date",
  "if-modified-since",
  "if-match",
  "if-none-match",
  "if-unmodified-since",
  "range",
];

/** Signs a request by an account's key; names of headers are expected in lower case. */
export function signByKey(request: HttpRequest, account: string, key: string): HttpRequest {
  const signature = createHmac("sha256", Buffer.from(key, "base64"))
    .update(textToSign(request, account))
    .digest("base64");
  return { ...request, headers: { ...request.headers, authorization: `SharedKey ${account}:${signature}` } };
}

function textToSign({ method, path, headers, body }: HttpRequest, account: string): string {
  const length = body === undefined || body.length === 0 ? "" : String(body.length);
  const values: Readonly<Record<string, string>> = { ...headers, "content-length": length };
  const own = Object.keys(headers)
    .filter((name) => name.startsWith("x-ms-"))
    .sort()
    .map((name) => `${name}:${(headers[name] ?? "").trim()}`);
  return [method, ...placed.map((name) => values[name] ?? ""), ...own, resourceOf(path, account)].join("\n");
}

function resourceOf(path: string, account: string): string {
  const at = path.indexOf("?");
  const plain = at < 0 ? path : path.slice(0, at);
  const query = [...new URLSearchParams(at < 0 ? "" : path.slice(at + 1))].map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  const lines = query.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}:${value}`);
  return [`/${account}${plain}`, ...lines].join("\n");
}
