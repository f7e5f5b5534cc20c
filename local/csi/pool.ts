import { existsSync, mkdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../process/run.ts";
import { CsiError } from "./csi-error.ts";
import type { VolumeName } from "./volume.ts";

/** The files that hold the volumes: one folder for each node, one sparse file with a filesystem for each volume. */
export class Pool {
  constructor(private readonly folders: ReadonlyMap<string, string>) {}

  get nodes(): string[] {
    return [...this.folders.keys()];
  }

  /** The volume of that name, on whatever node it is. */
  find(name: string): VolumeName | undefined {
    const node = this.nodes.find((each) => existsSync(this.file({ node: each, name })));
    return node === undefined ? undefined : { node, name };
  }

  /** File of a volume that is there. */
  require(volume: VolumeName): string {
    const file = this.folders.has(volume.node) ? this.file(volume) : undefined;
    if (file === undefined || !existsSync(file)) {
      throw new CsiError("NOT_FOUND", `there is no volume ${volume.name} on ${volume.node}`);
    }
    return file;
  }

  bytes(volume: VolumeName): bigint {
    return statSync(this.require(volume), { bigint: true }).size;
  }

  /** Makes a volume with an empty filesystem, as a whole or not at all. */
  async create(volume: VolumeName, bytes: bigint): Promise<void> {
    const file = this.file(volume);
    mkdirSync(join(file, ".."), { recursive: true });
    const temporary = `${file}.new`;
    writeFileSync(temporary, "", { mode: 0o600 });
    truncateSync(temporary, Number(bytes));
    await run("mkfs.xfs", ["-q", "-f", "-K", temporary], { timeoutMs: 60_000 });
    renameSync(temporary, file);
  }

  /** Makes the file larger; it never gets smaller. */
  grow(volume: VolumeName, bytes: bigint): void {
    if (bytes > this.bytes(volume)) truncateSync(this.require(volume), Number(bytes));
  }

  remove(volume: VolumeName): void {
    if (!this.folders.has(volume.node)) return;
    for (const file of [this.file(volume), `${this.file(volume)}.new`]) rmSync(file, { force: true });
  }

  private file({ node, name }: VolumeName): string {
    return join(this.folders.get(node) ?? "", `${name}.img`);
  }
}
