// Mutual TLS of a server: TLS 1.3 at least, a client certificate required, and the files read again when they change,
// because Kubernetes swaps mounted Secrets under a running process.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { ServerCredentials } from "@grpc/grpc-js";
import type { Logger } from "../ports/logger.ts";

export interface TlsListenOptions {
  kind: "tls";
  /** Host and port, for example `0.0.0.0:9090`; `:9090` means every address. Port 0 picks a free one. */
  address: string;
  certificateFile: string;
  keyFile: string;
  /** PEM that client certificates are checked with, often the one client's own certificate. */
  clientRootsFile: string;
  /** How often the files are looked at, milliseconds. @default 2000 */
  reloadMs?: number;
  logger: Logger;
}

export interface TlsListener {
  credentials: ServerCredentials;
  reload(): Promise<void>;
  stop(): void;
}

/** Reads the files once, failing on unusable ones, and then follows their changes. */
export async function listenTls(options: TlsListenOptions): Promise<TlsListener> {
  let current = await readFiles(options);
  const credentials = new ReloadingCredentials(current);

  async function reload(): Promise<void> {
    try {
      const next = await readFiles(options);
      if (next.cert === current.cert && next.key === current.key && next.ca === current.ca) return;
      current = next;
      credentials.use(next);
      options.logger.info("Certificates reloaded", { certificateFile: options.certificateFile });
    } catch (error) {
      // Half-written files, or a key that does not belong to the certificate yet: the old ones serve on.
      options.logger.warning("Certificates cannot be reloaded, the previous ones stay in use", {
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  const timer = setInterval(() => void reload(), options.reloadMs ?? 2_000);
  timer.unref();
  return { credentials, reload, stop: () => clearInterval(timer) };
}

interface Material {
  cert: string;
  key: string;
  ca: string;
}

async function readFiles(options: TlsListenOptions): Promise<Material> {
  const [cert, key, ca] = await Promise.all(
    [options.certificateFile, options.keyFile, options.clientRootsFile].map((path) => readFile(path, "utf8")),
  );
  if (cert === undefined || key === undefined || ca === undefined) throw new TypeError("three files were asked for");
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`${options.keyFile} is not the key of ${options.certificateFile}; renew them together`);
  }
  // Throws on roots that are no certificate.
  new X509Certificate(ca);
  return { cert, key, ca };
}

/** The library's own credentials know neither a minimal version nor a reload. */
class ReloadingCredentials extends ServerCredentials {
  #context: SecureContext;

  constructor(material: Material) {
    super(
      {
        requestCert: true,
        rejectUnauthorized: true,
        minVersion: "TLSv1.3",
        // A handshake that names its server (as gRPC clients do) gets the context below: only there the roots may be
        // certificates that are no authority, which is what peers exchange.
        SNICallback: (_name, done) => done(null, this.#context),
      },
      contextOptions(material),
    );
    this.#context = createSecureContext(contextOptions(material));
  }

  use(material: Material): void {
    this.#context = createSecureContext(contextOptions(material));
    this.updateSecureContextOptions(contextOptions(material));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function contextOptions(material: Material): SecureContextOptions {
  return { ...material, minVersion: "TLSv1.3", allowPartialTrustChain: true };
}
