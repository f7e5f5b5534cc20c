import type { PostmasterHost } from "../../ports/postmaster-host.ts";
import type { VolumeWatch } from "./volume-watch.ts";

/** A host whose server has a stake in the volumes from before its start to its end. */
export function probedHost(host: PostmasterHost, volumes: Pick<VolumeWatch, "stake">): PostmasterHost {
  return {
    hello: () => host.hello(),
    takeLogs: () => host.takeLogs(),
    spawn: async (command) => {
      await volumes.stake("server", true);
      try {
        return await host.spawn(command);
      } catch (error) {
        await volumes.stake("server", false);
        throw error;
      }
    },
    onPostmasterExit: (handler) =>
      host.onPostmasterExit((exit) => {
        void volumes.stake("server", false);
        handler(exit);
      }),
    setDeadline: (ms) => host.setDeadline(ms),
    probeVolumes: (folders, limitMs) => host.probeVolumes(folders, limitMs),
    keep: (note) => host.keep(note),
    upgrade: (staged) => host.upgrade(staged),
    exit: (code) => host.exit(code),
    lost: host.lost,
  };
}
