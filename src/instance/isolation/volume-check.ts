import { planVolumeProbe } from "../../plan/instance/volume-probe.ts";
import { within } from "../../runtime/within.ts";
import type { InstanceContext } from "../instance-context.ts";

/** The file that the launcher's probe writes too, so that there is never more than one. */
const probeFile = ".cnpg-ts.probe";

type CheckContext = Pick<InstanceContext, "clock" | "files" | "processes" | "settings" | "state">;

/**
 * Asks the volumes of an instance whose PostgreSQL is down for a sign of life: nobody probes them then, and a manager that took
 * the primary lease and hung on its disk would renew it for ever. A program of its own writes, since a write that hangs
 * can't be called off; one that still hangs is waited for again instead of starting another.
 */
export class VolumeCheck {
  readonly #context: CheckContext;
  readonly #limitMs: number;
  readonly #pending = new Map<string, Promise<string | null>>();

  constructor(context: CheckContext, limitMs = 5_000) {
    this.#context = context;
    this.#limitMs = limitMs;
  }

  /** Why the lease is better left to others; `null` when every volume takes writes or is merely full. */
  async reason(): Promise<string | null> {
    const { files, settings, state } = this.#context;
    const mounts = await files.read("/proc/self/mountinfo").catch(() => undefined);
    const { folders, limitMs } = planVolumeProbe(state.cluster, settings, mounts);
    if (limitMs === 0) return null;
    const reasons = await Promise.all(folders.map((folder) => this.#check(folder)));
    return reasons.find((reason) => reason !== null) ?? null;
  }

  async #check(folder: string): Promise<string | null> {
    const pending = this.#pending.get(folder) ?? this.#write(folder);
    this.#pending.set(folder, pending);
    const tooLong = `no write to ${folder} came back within ${this.#limitMs / 1_000} s`;
    return within(this.#context.clock, this.#limitMs, pending, tooLong);
  }

  async #write(folder: string): Promise<string | null> {
    const args = ["if=/dev/zero", `of=${folder}/${probeFile}`, "bs=8", "count=1", "conv=fsync", "status=none"];
    try {
      const { code, stderr } = await this.#context.processes.run("dd", args, { env: { LC_ALL: "C" } });
      // PostgreSQL has its own way to find out that a disk is full.
      if (code === 0 || /No space left on device|Disk quota exceeded/.test(stderr)) return null;
      return `${folder} takes no writes: ${stderr.trim() || `dd ended with ${code}`}`;
    } catch {
      // Without that program nothing is known, and nothing is held against the disk.
      return null;
    } finally {
      this.#pending.delete(folder);
    }
  }
}
