// From a reference to an archive to a client that reaches it: ObjectStore, credentials, certificate authority. Every call to
// an endpoint goes through here, so that archive, check, restore, backup, list and delete all use the same options.
import { createHash } from "node:crypto";
import type { ObjectStore as ObjectStoreObject } from "../../api/generated/objectstore.ts";
import { type ServerKeys, serverKeys } from "../../barman/object-keys.ts";
import {
  buildConnection,
  listSecretKeys,
  type SecretKey,
  type StoreConfiguration,
  type StoreConnection,
} from "../../barman/store-configuration.ts";
import { buildEncryption } from "../../barman/store-encryption.ts";
import { resources } from "../../kube/resources.ts";
import type { Files } from "../../ports/files.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { createObjectStore, type StoreEnvironment } from "../../store/create-store.ts";
import { StatusError } from "../framework/status-error.ts";
import type { CachedReader } from "./cached-reader.ts";
import type { StoreReference } from "./cluster-stores.ts";
import { certificateFile, certificatesFolder } from "./sidecar-container.ts";

/** Everything known of an archive before it is connected to. */
export interface StoreFacts {
  object: ObjectStoreObject;
  configuration: StoreConfiguration;
  connection: StoreConnection;
  serverName: string;
  keys: ServerKeys;
  /** Changes when anything does that a client was made from. */
  fingerprint: string;
}

/** What a client is opened for: WAL and base backups may be encrypted differently. */
export type StorePurpose = "wal" | "data";

/** Reaches archives. */
export interface StoreAccess {
  /** Reads what the archive is, with the credentials of now. Fails with a `StatusError` that names what is amiss. */
  describe(reference: StoreReference): Promise<StoreFacts>;
  /** A client of its own; the caller closes it. */
  open(facts: StoreFacts, purpose: StorePurpose): Promise<ObjectStore>;
  /** Forgets the credentials: the store refused them, so they may have been replaced a moment ago. */
  forget(facts: StoreFacts): void;
}

export interface StoreAccessDeps {
  reader: CachedReader;
  files: Files;
  namespace: string;
  env: StoreEnvironment;
  /** @default /barman-certificates */
  certificates?: string;
}

/** Creates the access for one namespace. */
export function createStoreAccess(deps: StoreAccessDeps): StoreAccess {
  return {
    async describe({ objectStore, serverName }) {
      const object = await readObjectStore(deps, objectStore);
      const { configuration } = object.spec;
      const values = await readValues(deps, objectStore, configuration);
      const connection = buildConnection(configuration, (key) => values.get(key));
      if ("error" in connection) throw refused(deps, objectStore, connection.error);
      const keys = serverKeys(connection.destination.path, serverName);
      const fingerprint = hash({ configuration, connection, serverName });
      return { object, configuration, connection, serverName, keys, fingerprint };
    },
    open: async ({ object, configuration, connection }, purpose) => {
      try {
        return await createObjectStore(connection, deps.env, buildEncryption(configuration, purpose));
      } catch (error) {
        throw refused(deps, object.metadata.name ?? "", error instanceof Error ? error.message : String(error));
      }
    },
    forget({ configuration }) {
      for (const { name } of listSecretKeys(configuration)) {
        deps.reader.forget(resources.secrets, { namespace: deps.namespace, name });
      }
    },
  };
}

async function readObjectStore({ reader, namespace }: StoreAccessDeps, name: string): Promise<ObjectStoreObject> {
  try {
    return await reader.get(resources.objectStores, { namespace, name });
  } catch (error) {
    throw refusedRead(error, `ObjectStore ${namespace}/${name}`);
  }
}

/** The values by the reference that asks for them, since one Secret may serve several fields. */
async function readValues(
  deps: StoreAccessDeps,
  objectStore: string,
  configuration: StoreConfiguration,
): Promise<Map<SecretKey, string | undefined>> {
  const values = new Map<SecretKey, string | undefined>();
  for (const reference of listSecretKeys(configuration)) {
    const isAuthority = reference === configuration.endpointCA;
    const value = isAuthority ? await readAuthority(deps, objectStore) : await readSecretKey(deps, reference);
    values.set(reference, value);
  }
  return values;
}

/** Mounted, not read: the instances have no access to that Secret. */
async function readAuthority(deps: StoreAccessDeps, objectStore: string): Promise<string> {
  const path = `${deps.certificates ?? certificatesFolder}/${certificateFile(objectStore)}`;
  const text = await deps.files.read(path);
  if (text) return text;
  throw new StatusError(
    "FAILED_PRECONDITION",
    `ObjectStore ${deps.namespace}/${objectStore} names an endpointCA, but ${path} is not there: the pod was made before it, and has to be made anew`,
  );
}

async function readSecretKey({ reader, namespace }: StoreAccessDeps, { name, key }: SecretKey) {
  try {
    const secret = await reader.get(resources.secrets, { namespace, name });
    const value = secret.data?.[key];
    // Values that came through an editor often end with a newline; no credential does.
    return value === undefined
      ? undefined
      : Buffer.from(value, "base64")
          .toString("utf8")
          .replace(/\r?\n$/, "");
  } catch (error) {
    throw refusedRead(error, `Secret ${namespace}/${name}`);
  }
}

/** Absence and missing rights are told apart from an API server that does not answer, which is worth another try. */
function refusedRead(error: unknown, what: string): Error {
  if (isKubeError(error, "forbidden")) {
    const text = `${what} may not be read yet: the plugin grants that when it next looks at the Cluster`;
    return new StatusError("FAILED_PRECONDITION", text, { cause: error });
  }
  if (isKubeError(error, "notFound")) {
    return new StatusError("FAILED_PRECONDITION", `${what} does not exist: create it`, { cause: error });
  }
  if (isKubeError(error, "unavailable")) {
    return new StatusError("UNAVAILABLE", `${what} cannot be read now: ${error.message}`, { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error));
}

function refused({ namespace }: StoreAccessDeps, name: string, reason: string): StatusError {
  return new StatusError("FAILED_PRECONDITION", `ObjectStore ${namespace}/${name}: ${reason}`);
}

function hash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
