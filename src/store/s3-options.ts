import { readFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import type { StoreProxy } from "./proxy.ts";

/** How to reach one bucket. Every call made to the endpoint uses the same options. */
export interface S3Options {
  bucket: string;
  /** A service other than AWS, for example `http://minio:9000`. */
  endpoint?: string | undefined;
  /** @default us-east-1 with an endpoint; otherwise what the environment says */
  region?: string | undefined;
  /** Absent: whatever the environment offers (web identity, instance role, …). */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined } | undefined;
  /** A named set of credentials in the environment's own files. */
  profile?: string | undefined;
  /** PEM certificates that replace the system's roots for this endpoint. */
  ca?: string | undefined;
  /** How the bucket is named in requests. @default auto: in the path for foreign endpoints, in the host for AWS */
  addressing?: "auto" | "path" | "virtual" | undefined;
  encryption?: "AES256" | "aws:kms" | undefined;
  /** Only with `aws:kms`. */
  kmsKeyId?: string | undefined;
  /** @default 10000 */
  connectTimeoutMs?: number | undefined;
  /** Longest time without a byte in either direction. @default 60000 */
  readTimeoutMs?: number | undefined;
  /** Attempts of one call within the client. @default 3 */
  maxAttempts?: number | undefined;
  /** Sockets at once. @default 32 */
  maxSockets?: number | undefined;
  /** @default none */
  proxy?: StoreProxy | undefined;
}

/** Agents are kept beside the client, since they hold the sockets that must be closed in the end. */
export interface CompiledS3Options {
  client: S3ClientConfig;
  close(): void;
}

/** Turns options into the SDK's configuration; throws for options that contradict each other. */
export function compileS3Options(options: S3Options): CompiledS3Options {
  if (options.kmsKeyId !== undefined && options.encryption !== "aws:kms") {
    throw new Error("a KMS key is given, but the encryption is not aws:kms");
  }
  const proxy = options.proxy ? { proxyEnv: { ...options.proxy } } : {};
  const sockets = { keepAlive: true, maxSockets: options.maxSockets ?? 32, noDelay: true, ...proxy };
  const httpAgent = new HttpAgent(sockets);
  const httpsAgent = new HttpsAgent(options.ca === undefined ? sockets : { ...sockets, ca: options.ca });
  const foreign = options.endpoint !== undefined;
  const region = options.region ?? (foreign ? "us-east-1" : undefined);
  return {
    client: {
      ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
      ...(region === undefined ? {} : { region }),
      ...(options.credentials === undefined ? {} : { credentials: stripUndefined(options.credentials) }),
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      forcePathStyle: options.addressing === "path" || (foreign && options.addressing !== "virtual"),
      // Other services often refuse the newer checksum headers; what we send them is confirmed by MD5 instead.
      requestChecksumCalculation: foreign ? "WHEN_REQUIRED" : "WHEN_SUPPORTED",
      responseChecksumValidation: "WHEN_REQUIRED",
      // One more round trip for each object, to save bodies that are refused; ours hardly ever are.
      expectContinueHeader: false,
      followRegionRedirects: !foreign,
      maxAttempts: options.maxAttempts ?? 3,
      requestHandler: {
        httpAgent,
        httpsAgent,
        connectionTimeout: options.connectTimeoutMs ?? 10_000,
        socketTimeout: options.readTimeoutMs ?? 60_000,
      },
      logger: silent,
    },
    close() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

/** Reads a CA bundle named by the environment; undefined when none is named. */
export function readCaBundle(path: string | undefined): string | undefined {
  return path === undefined || path === "" ? undefined : readFileSync(path, "utf8");
}

const quiet = () => undefined;
/** The SDK would write warnings to the console, past our log. */
const silent = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

function stripUndefined(credentials: NonNullable<S3Options["credentials"]>) {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  return sessionToken === undefined || sessionToken === ""
    ? { accessKeyId, secretAccessKey }
    : { accessKeyId, secretAccessKey, sessionToken };
}
