export type StoreProvider = "s3" | "azure" | "gcs" | "folder";

/** Where an archive lives: a bucket (or container, or folder) and a path in it without slashes at its ends. */
export interface Destination {
  provider: StoreProvider;
  bucket: string;
  /** Key prefix without a trailing slash; empty for the bucket's root. */
  path: string;
  /** Azure: scheme, host and, in the emulator form, account. */
  azure?: { endpoint: string; account: string; emulator: boolean };
}

/** Reads a `destinationPath`; the text of the failure names the accepted forms. */
export function parseDestination(text: string): Destination | { error: string } {
  const url = splitUrl(text);
  switch (url?.scheme) {
    case "s3":
      return parseS3(url.rest, text);
    case "gs": {
      const [bucket, path] = splitOnce(url.rest);
      return bucket === "" ? missing(text, "bucket") : { provider: "gcs", bucket, path: trimSlashes(path) };
    }
    case "file":
      return url.rest.startsWith("/")
        ? { provider: "folder", bucket: trimEnd(url.rest), path: "" }
        : missing(text, "path");
    case "http":
    case "https":
      return parseHttp(url.scheme, url.rest, text);
    default:
      return {
        error: `destinationPath ${JSON.stringify(text)} is none of s3://BUCKET/PATH, gs://BUCKET/PATH, https://ACCOUNT.blob.core.windows.net/CONTAINER/PATH`,
      };
  }
}

/** Writes a destination as a URL, for messages and for telling two archives apart. */
export function formatDestination(destination: Destination): string {
  const tail = destination.path === "" ? "" : `/${destination.path}`;
  switch (destination.provider) {
    case "s3":
      return `s3://${destination.bucket}${tail}`;
    case "gcs":
      return `gs://${destination.bucket}${tail}`;
    case "folder":
      return `file://${destination.bucket}${tail}`;
    case "azure":
      return `${destination.azure?.endpoint ?? ""}/${destination.bucket}${tail}`;
  }
}

function parseS3(rest: string, text: string): Destination | { error: string } {
  // An access point's ARN has one slash of its own and stands for the bucket as a whole.
  const arn = /^(arn:[^/]*:accesspoint\/[^/]+)(?:\/(.*))?$/.exec(rest);
  const [bucket, path] = arn ? [arn[1] ?? "", arn[2] ?? ""] : splitOnce(rest);
  return bucket === "" ? missing(text, "bucket") : { provider: "s3", bucket, path: trimSlashes(path) };
}

function parseHttp(scheme: string, rest: string, text: string): Destination | { error: string } {
  const [host, path] = splitOnce(rest);
  if (host === "console.cloud.google.com") {
    const browser = "storage/browser/";
    if (!path.startsWith(browser)) return missing(text, "storage/browser/BUCKET");
    const [bucket, inner] = splitOnce(path.slice(browser.length));
    return bucket === "" ? missing(text, "bucket") : { provider: "gcs", bucket, path: trimSlashes(inner) };
  }
  const account = /^([^.]+)\.blob\.core\.windows\.net$/.exec(host)?.[1];
  const [first, inner] = splitOnce(path);
  if (account !== undefined) {
    if (first === "") return missing(text, "container");
    const azure = { endpoint: `${scheme}://${host}`, account, emulator: false };
    return { provider: "azure", bucket: first, path: trimSlashes(inner), azure };
  }
  const [container, deeper] = splitOnce(inner);
  if (first === "" || container === "") return missing(text, "account and container");
  const azure = { endpoint: `${scheme}://${host}/${first}`, account: first, emulator: true };
  return { provider: "azure", bucket: container, path: trimSlashes(deeper), azure };
}

function splitUrl(text: string): { scheme: string; rest: string } | undefined {
  const match = /^([a-z0-9]+):\/\/(.*)$/i.exec(text);
  return match ? { scheme: (match[1] ?? "").toLowerCase(), rest: match[2] ?? "" } : undefined;
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf("/");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function trimSlashes(text: string): string {
  return trimEnd(text.replace(/^\/+/, ""));
}

function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

function missing(text: string, what: string): { error: string } {
  return { error: `destinationPath ${JSON.stringify(text)} names no ${what}` };
}
