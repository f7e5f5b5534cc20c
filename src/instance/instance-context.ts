import type { Clock, Random } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { KubeApi } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { Processes } from "../ports/processes.ts";
import type { SqlRawConnector } from "../ports/sql-session.ts";
import type { DataFolder } from "./data-folder.ts";
import type { InstancePaths } from "./instance-paths.ts";
import type { InstanceState } from "./instance-state.ts";
import type { PodPlugins } from "./plugins/pod-plugins.ts";
import type { InstanceSettings } from "./settings.ts";

/** What every part of an instance manager works with. */
export interface InstanceContext {
  settings: InstanceSettings;
  paths: InstancePaths;
  state: InstanceState;
  data: DataFolder;
  files: Files;
  processes: Processes;
  kube: KubeApi;
  sql: SqlRawConnector;
  /** Sessions that our parts keep open to the local server. */
  localSessions: Set<{ close(): Promise<void> }>;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Plugins that serve the pod; absent where nobody asked for them. */
  plugins?: PodPlugins;
  /** Archives one WAL file whoever is the primary; false when nobody archives. Absent where no WAL is served. */
  archiveWal?: (path: string) => Promise<boolean>;
  /** Name of the user that this process and PostgreSQL run as. */
  systemUser: string;
}
