// Files with the credentials of external clusters, where connection texts point to (reference: declarative objects §12.3).
import type { Cluster } from "../api/generated/cluster.ts";
import { buildPgpass, externalClusterFolder, externalSecretFile } from "../postgres/conninfo.ts";
import type { InstanceContext } from "./instance-context.ts";
import { relocate } from "./instance-paths.ts";
import { type SecretReader, secretText } from "./secret-reader.ts";

export type ExternalServer = NonNullable<Cluster["spec"]["externalClusters"]>[number];

/** Writes the certificates and the password file of an external cluster; fails naming the Secret that is amiss. */
export async function writeExternalFiles(
  context: InstanceContext,
  server: ExternalServer,
  secrets: SecretReader,
  signal?: AbortSignal,
): Promise<boolean> {
  const { files, settings } = context;
  const folder = relocate(settings, externalClusterFolder(server.name));
  await files.makeDirectory(folder, 0o700);
  let changed = false;
  const write = async (path: string, content: string) => {
    if (await files.writeAtomic(path, content, 0o600)) changed = true;
  };
  const read = async (reference: { name?: string; key: string }) => {
    const name = reference.name ?? "";
    const result = await secrets.read(name, signal);
    const text = result.kind === "found" ? secretText(result.secret, reference.key) : undefined;
    if (text !== undefined) return text;
    const why = result.kind === "found" ? `has no key ${reference.key}` : explain(result);
    throw new Error(`Secret ${name} of external cluster ${server.name} ${why}`);
  };
  for (const reference of [server.sslCert, server.sslKey, server.sslRootCert]) {
    if (!reference) continue;
    await write(relocate(settings, externalSecretFile(server.name, reference)), await read(reference));
  }
  if (server.password) await write(`${folder}/pgpass`, buildPgpass(server, await read(server.password)));
  return changed;
}

function explain(result: { kind: "missing" | "forbidden" } | { kind: "unavailable"; reason: string }): string {
  switch (result.kind) {
    case "missing":
      return "does not exist";
    case "forbidden":
      return "may not be read yet: the operator grants that when it next looks at the Cluster";
    case "unavailable":
      return `cannot be read now: ${result.reason}`;
  }
}
