import { type BigIntStatsFs, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { readRecord } from "../cluster/inside/record.ts";
import { isAlive } from "../process/identity.ts";
import { enterArguments } from "../process/namespaces.ts";
import { run } from "../process/run.ts";
import { CsiError } from "./csi-error.ts";
import { findMount, type MountEntry, parseMountTable } from "./mount-table.ts";

const commandTimeoutMs = 30_000;

/** The mounts of one node, looked at and changed from beside the control plane. */
export class NodeMounts {
  /** `recordFile` notes the node's first process, another one after each start of the node. */
  constructor(private readonly recordFile: string) {}

  /** What is mounted there. */
  at(path: string): MountEntry | undefined {
    return findMount(parseMountTable(readFileSync(`/proc/${this.pid()}/mountinfo`, "utf8")), path);
  }

  /** Runs a program among the node's mounts. */
  async command(name: string, args: readonly string[]): Promise<void> {
    await run("nsenter", enterArguments(this.pid(), [name, ...args]), { timeoutMs: commandTimeoutMs });
  }

  /** Unmounts what is there; nothing being there is as good. */
  async remove(path: string): Promise<void> {
    while (this.at(path)) await this.command("umount", [path]);
  }

  /** Sizes of a mounted filesystem. */
  statfs(path: string): Promise<BigIntStatsFs> {
    return statfs(`/proc/${this.pid()}/root${path}`, { bigint: true });
  }

  private pid(): number {
    const record = readRecord(this.recordFile);
    if (!record || !isAlive(record)) throw new CsiError("UNAVAILABLE", "the node is not running");
    return record.pid;
  }
}
