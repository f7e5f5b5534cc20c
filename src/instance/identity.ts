import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Files } from "../ports/files.ts";
import { unknownSystemUser } from "../postgres/ident-conf.ts";
import type { InstancePaths } from "./instance-paths.ts";

/** Where Kubernetes puts the token of the pod's ServiceAccount. */
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/** UID of the pod as a bound ServiceAccount token tells it; `undefined` when the token says nothing. */
export function parsePodUid(token: string): string | undefined {
  const payload = token.split(".")[1];
  if (!payload) return undefined;
  try {
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as {
      "kubernetes.io"?: { pod?: { uid?: unknown } };
    };
    const uid = claims["kubernetes.io"]?.pod?.uid;
    return typeof uid === "string" && uid !== "" ? uid : undefined;
  } catch {
    return undefined;
  }
}

/** What tells this pod from another of the same name: its UID, else a random value kept on the pod's own scratch volume. */
export async function readPodUid(
  files: Files,
  paths: InstancePaths,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const given = environment["CNPG_TS_POD_UID"] ?? parsePodUid((await files.read(tokenFile)) ?? "");
  if (given) return given;
  const file = `${paths.ipc}/pod-uid`;
  const kept = (await files.read(file))?.trim();
  if (kept) return kept;
  const made = randomUUID();
  await files.makeDirectory(paths.ipc, 0o700);
  await files.writeAtomic(file, made, 0o600);
  return made;
}

/** Name of a user in the text of a passwd file. The file is read as it is: look-ups could load the image's own modules. */
export function findUserName(passwd: string, uid: number): string | undefined {
  for (const line of passwd.split("\n")) {
    const [name, , id] = line.split(":");
    if (name && id === String(uid)) return name;
  }
  return undefined;
}

/** Name of the user that this process and PostgreSQL run as. */
export async function readSystemUser(files: Files): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  return findUserName((await files.read("/etc/passwd")) ?? "", uid) ?? unknownSystemUser;
}

/** Go's name of this machine's architecture. */
export function goArch(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}

/** Identity of the launcher and runtime in use, as the release recorded it; the program's own hash outside of a release. */
export function readExecutableHash(program: string): string {
  try {
    const manifest = JSON.parse(readFileSync(`${dirname(program)}/manifest.json`, "utf8")) as { hash?: unknown };
    if (typeof manifest.hash === "string" && manifest.hash !== "") return manifest.hash;
  } catch {
    // Not started from a release: fall through.
  }
  return createHash("sha256").update(readFileSync(program)).digest("hex");
}
