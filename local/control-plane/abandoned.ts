import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive, type ProcessIdentity } from "../process/identity.ts";

const ownerFile = "owner.json";

/** Notes in a temporary folder which process will remove it. */
export function claimFolder(folder: string): void {
  writeFileSync(join(folder, ownerFile), JSON.stringify(identify(process.pid)));
}

/** Removes the folders with that prefix whose process was killed before it could do so itself. */
export function removeAbandoned(parent: string, prefix: string): void {
  for (const entry of readdirSync(parent).filter((name) => name.startsWith(prefix))) {
    const owner = readOwner(join(parent, entry));
    if (owner && !isAlive(owner)) rmSync(join(parent, entry), { recursive: true, force: true });
  }
}

/** Undefined when the folder is just being made, or is not ours. */
function readOwner(folder: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, ownerFile), "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
