import { planVolumeProbe } from "../../plan/instance/volume-probe.ts";
import type { PostmasterHost } from "../../ports/postmaster-host.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Has the volumes of a running PostgreSQL probed: a disk that hangs would keep a primary alive that can't write. */
export function probedHost(
  host: PostmasterHost,
  context: InstanceContext,
): PostmasterHost & { probe(): Promise<void> } {
  let running = 0;
  const probe = async () => {
    const asked = running;
    // A file of the kernel's: it can be read however the disks are.
    const mounts = await context.files.read("/proc/self/mountinfo").catch(() => undefined);
    const { folders, limitMs } = planVolumeProbe(context.state.cluster, context.settings, mounts);
    if (asked === running) host.probeVolumes(folders, limitMs);
  };
  return {
    hello: () => host.hello(),
    takeLogs: () => host.takeLogs(),
    spawn: async (command) => {
      const pid = await host.spawn(command);
      await probe();
      return pid;
    },
    onPostmasterExit: (handler) =>
      host.onPostmasterExit((exit) => {
        running += 1;
        handler(exit);
        host.probeVolumes([], 0);
      }),
    setDeadline: (ms) => host.setDeadline(ms),
    probeVolumes: (folders, limitMs) => host.probeVolumes(folders, limitMs),
    upgrade: (staged) => host.upgrade(staged),
    exit: (code) => host.exit(code),
    lost: host.lost,
    probe,
  };
}
