// From an in-tree archive in the Cluster to a client that reaches it, with the credentials of now (reference: backup §3.3).
import { createHash } from "node:crypto";
import { WalError } from "../../archive/wal-error.ts";
import { type ServerKeys, serverKeys } from "../../barman/object-keys.ts";
import {
  buildConnection,
  listSecretKeys,
  type SecretKey,
  type StoreConnection,
} from "../../barman/store-configuration.ts";
import { buildEncryption } from "../../barman/store-encryption.ts";
import { resources } from "../../kube/resources.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import type { Clock } from "../../ports/clock.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { createObjectStore, type StoreEnvironment } from "../../store/create-store.ts";

/** Everything known of an archive before it is connected to. */
export interface PlaceFacts extends InTreeArchive {
  connection: StoreConnection;
  keys: ServerKeys;
  /** Changes when anything does that a client was made from. */
  fingerprint: string;
}

export interface ArchivePlacesDeps {
  kube: KubeApi;
  clock: Clock;
  namespace: string;
  environment: StoreEnvironment;
}

/** How long a Secret's content is used before it is read again, so that rotated credentials need no restart. */
const secretAgeMs = 10_000;

type SecretData = Record<string, string> | undefined;

/** Reaches the archives that the Cluster describes itself. */
export class ArchivePlaces {
  readonly #deps: ArchivePlacesDeps;
  readonly #secrets = new Map<string, { data: SecretData; atMs: number }>();

  constructor(deps: ArchivePlacesDeps) {
    this.#deps = deps;
  }

  /** Reads what the archive is; every failure is a `WalError` that names what is amiss. */
  async describe(archive: InTreeArchive): Promise<PlaceFacts> {
    const { configuration, serverName, field } = archive;
    const values = new Map<SecretKey, string | undefined>();
    for (const reference of listSecretKeys(configuration)) values.set(reference, await this.#value(reference));
    const connection = buildConnection(configuration, (reference) => values.get(reference));
    if ("error" in connection) throw new WalError("denied", `${field}: ${connection.error}`);
    const fingerprint = createHash("sha256")
      .update(JSON.stringify({ configuration, connection, serverName }))
      .digest("hex");
    return { ...archive, connection, keys: serverKeys(connection.destination.path, serverName), fingerprint };
  }

  /** A client of its own, which the caller closes; WAL and base backups may be encrypted differently. */
  async open(facts: PlaceFacts, purpose: "wal" | "data"): Promise<ObjectStore> {
    try {
      return await createObjectStore(
        facts.connection,
        this.#deps.environment,
        buildEncryption(facts.configuration, purpose),
      );
    } catch (error) {
      throw new WalError("local", `${facts.field}: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }

  /** The next description reads the credentials anew: the store has just refused them. */
  forget(): void {
    this.#secrets.clear();
  }

  async #value(reference: SecretKey): Promise<string | undefined> {
    const data = await this.#read(reference.name);
    const value = data?.[reference.key];
    // Values that came through an editor often end with a newline; no credential does.
    return value === undefined
      ? undefined
      : Buffer.from(value, "base64")
          .toString("utf8")
          .replace(/\r?\n$/, "");
  }

  async #read(name: string): Promise<SecretData> {
    const { kube, clock, namespace } = this.#deps;
    const known = this.#secrets.get(name);
    if (known && clock.monotonicMs() - known.atMs < secretAgeMs) return known.data;
    try {
      const { data } = await kube.get(resources.secrets, { namespace, name }, { timeoutMs: 5_000 });
      this.#secrets.set(name, { data: data ?? {}, atMs: clock.monotonicMs() });
      return data ?? {};
    } catch (error) {
      if (isKubeError(error, "notFound")) return undefined;
      if (isKubeError(error, "forbidden")) {
        const text = `Secret ${name} may not be read yet: the operator grants that when it next looks at the Cluster`;
        throw new WalError("denied", text, error);
      }
      // What was found stays good while the API server is away.
      if (known) return known.data;
      throw WalError.from(`Secret ${name} cannot be read now`, error);
    }
  }
}
