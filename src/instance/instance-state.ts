import type { Cluster } from "../api/generated/cluster.ts";

/** Facts about this instance that its parts share. Each field has one writer, named in its comment. */
export interface InstanceState {
  /** The newest Cluster seen, from watch or live read. Writer: the cluster watch. */
  cluster: Cluster | undefined;
  /** PostgreSQL is kept down by request. Writer: the lifecycle. */
  fenced: boolean;
  /** The fence was lifted and PostgreSQL has not come up since. Writer: the lifecycle. */
  unfencing: boolean;
  /** A restart is under way. Writer: the lifecycle. */
  restarting: boolean;
  /** pg_rewind is at work. Writer: the demotion. */
  rewinding: boolean;
  /** Another instance manager is being received or taken over to. Writer: the upgrade. */
  upgrading: boolean;
  /** The container is about to end. Writer: the lifecycle. */
  stopping: boolean;
  /** Volumes that took no write when everything was killed for it, and not since (monotonic). Writer: the volume watch. */
  silentVolumes: { folders: readonly string[]; sinceMs: number } | undefined;
  /** Why PostgreSQL lets nobody in although it runs: its files are damaged. Writer: the readiness probe. */
  dataDamage: string | undefined;
  /** Last liveness verdict. Writer: the liveness probe. */
  isolated: boolean;
  /** Hash of the configuration on disk. Writer: the reconciler. */
  configurationHash: string;
  /** Where the runtime before this one found its voters. Writer: the start of this one. */
  rememberedPeers: Readonly<Record<string, { host: string; port: number }>>;
  /** Server certificate and key in use by our own web servers. Writer: the certificate step. */
  serverCertificate: { cert: string; key: string } | undefined;
}

export function createInstanceState(): InstanceState {
  return {
    cluster: undefined,
    fenced: false,
    unfencing: false,
    restarting: false,
    rewinding: false,
    upgrading: false,
    stopping: false,
    silentVolumes: undefined,
    dataDamage: undefined,
    isolated: false,
    configurationHash: "",
    rememberedPeers: {},
    serverCertificate: undefined,
  };
}

/** PostgreSQL may be down on purpose, which probes and status must not report as a failure. */
export function mightBeUnavailable(state: InstanceState): boolean {
  return state.fenced || state.restarting;
}

/**
 * The same as others are told it: also from the end of a fence until PostgreSQL came up or failed to, or a primary that is
 * only starting would be failed over the moment its fence is lifted.
 */
export function reportsUnavailable(state: InstanceState): boolean {
  return mightBeUnavailable(state) || state.unfencing;
}
