import { paths } from "../api/constants.ts";
import type { InstanceSettings } from "./settings.ts";

/** Files and folders of one instance. */
export interface InstancePaths {
  pgData: string;
  pgWal: string;
  walVolume: string;
  scratch: string;
  tmp: string;
  socketDir: string;
  certificates: string;
  log: string;
  ipc: string;
  walSocket: string;
  customConf: string;
  overrideConf: string;
  postgresqlConf: string;
  autoConf: string;
  hba: string;
  ident: string;
  standbySignal: string;
  postmasterPid: string;
  pgVersion: string;
  controlFile: string;
  checkEmptyArchive: string;
  /** "This pod has started here before". */
  initialized: string;
}

export function instancePaths(settings: InstanceSettings): InstancePaths {
  const { pgData, scratch } = settings;
  return {
    pgData,
    pgWal: `${pgData}/pg_wal`,
    walVolume: settings.walVolume,
    scratch,
    tmp: `${scratch}/tmp`,
    socketDir: `${scratch}/run`,
    certificates: `${scratch}/certificates`,
    log: `${scratch}/log`,
    ipc: `${scratch}/ipc`,
    walSocket: `${scratch}/ipc/wal.sock`,
    customConf: `${pgData}/custom.conf`,
    overrideConf: `${pgData}/override.conf`,
    postgresqlConf: `${pgData}/postgresql.conf`,
    autoConf: `${pgData}/postgresql.auto.conf`,
    hba: `${pgData}/pg_hba.conf`,
    ident: `${pgData}/pg_ident.conf`,
    standbySignal: `${pgData}/standby.signal`,
    postmasterPid: `${pgData}/postmaster.pid`,
    pgVersion: `${pgData}/PG_VERSION`,
    controlFile: `${pgData}/global/pg_control`,
    checkEmptyArchive: `${pgData}/.check-empty-wal-archive`,
    initialized: `${pgData}/cnpg_initialized-${settings.podName}`,
  };
}

/** Moves paths in a configuration text to where this instance has its files; the text is unchanged in a pod. */
export function relocate(settings: InstanceSettings, text: string): string {
  if (settings.scratch === paths.scratch) return text;
  return text.replaceAll(`${paths.scratch}/`, `${settings.scratch}/`);
}
