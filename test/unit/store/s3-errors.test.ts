import { describe, expect, test } from "vitest";
import { ObjectStoreError } from "../../../src/ports/object-store.ts";
import { classifyS3Failure, toStoreError } from "../../../src/store/s3-errors.ts";
import { compileS3Options } from "../../../src/store/s3-options.ts";

test.each([
  ["NoSuchKey", 404, "notFound"],
  ["NoSuchBucket", 404, "bucketMissing"],
  ["NotFound", 404, "unavailable"],
  ["Unknown", 404, "unavailable"],
  ["AccessDenied", 403, "denied"],
  ["RequestTimeTooSkewed", 403, "denied"],
  ["CredentialsProviderError", undefined, "denied"],
  ["PreconditionFailed", 412, "conflict"],
  ["ConditionalRequestConflict", 409, "conflict"],
  ["OperationAborted", 409, "unavailable"],
  ["BadDigest", 400, "corrupt"],
  ["RequestTimeout", 400, "unavailable"],
  ["InvalidArgument", 400, "invalid"],
  ["NotImplemented", 501, "invalid"],
  ["SlowDown", 503, "unavailable"],
  ["Error", undefined, "unavailable"],
] as const)("%s with status %s is %s", (name, status, kind) => {
  expect(classifyS3Failure(name, status)).toBe(kind);
});

describe("message", () => {
  const error = (facts: object) => Object.assign(new Error("no such key"), facts);
  test.each([
    [
      error({ name: "NoSuchKey", $metadata: { httpStatusCode: 404, requestId: "R1" } }),
      "GET s3://b/k: HTTP 404 NoSuchKey no such key (request R1)",
    ],
    [error({ code: "ECONNRESET", message: "socket hang up" }), "GET s3://b/k: ECONNRESET socket hang up"],
    [error({ name: "Unknown", message: "UnknownError", $metadata: { httpStatusCode: 403 } }), "GET s3://b/k: HTTP 403"],
    ["nonsense", "GET s3://b/k: failed without a reason"],
  ])("names operation, key and cause", (cause, message) => {
    expect(toStoreError(cause, "GET", "s3://b", "k")).toMatchObject({ message, operation: "GET", key: "k" });
  });

  test("an abort is the reason that was given, and a store error stays what it is", () => {
    const controller = new AbortController();
    controller.abort(new Error("stop"));
    expect(toStoreError(new Error("x"), "GET", "s3://b", "k", controller.signal)).toBe(controller.signal.reason);
    const known = new ObjectStoreError("x", { kind: "corrupt", operation: "PUT", key: "k" });
    expect(toStoreError(known, "GET", "s3://b", "k")).toBe(known);
  });
});

describe("options", () => {
  const client = (options: object) => {
    const compiled = compileS3Options({ bucket: "b", ...options });
    compiled.close();
    return compiled.client;
  };

  test.each([
    [{}, false, "WHEN_SUPPORTED"],
    [{ endpoint: "http://minio:9000" }, true, "WHEN_REQUIRED"],
    [{ endpoint: "http://minio:9000", addressing: "virtual" }, false, "WHEN_REQUIRED"],
    [{ addressing: "path" }, true, "WHEN_SUPPORTED"],
    [{ addressing: "virtual" }, false, "WHEN_SUPPORTED"],
  ])("%j", (options, forcePathStyle, requestChecksumCalculation) => {
    expect(client(options)).toMatchObject({ forcePathStyle, requestChecksumCalculation });
  });

  test("a session token goes along when there is one, and a region is taken from the environment unless it is given", () => {
    const credentials = { accessKeyId: "a", secretAccessKey: "s" };
    expect(client({ credentials: { ...credentials, sessionToken: "t" } }).credentials).toEqual({
      ...credentials,
      sessionToken: "t",
    });
    expect(client({ credentials: { ...credentials, sessionToken: "" } }).credentials).toEqual(credentials);
    expect(client({})).not.toHaveProperty("region");
    expect(client({ endpoint: "http://x" }).region).toBe("us-east-1");
    expect(client({ region: "eu-west-3" }).region).toBe("eu-west-3");
  });

  test("a KMS key without KMS is a contradiction", () => {
    expect(() => client({ kmsKeyId: "k", encryption: "AES256" })).toThrow("KMS key");
  });
});
