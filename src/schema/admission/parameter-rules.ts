import { archiveMode, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseQuantity } from "../../api/quantity.ts";
import { fixedParameters } from "../../postgres/parameters.ts";
import { parseMemory, parsePostgresBoolean } from "../../postgres/values.ts";
import { fixedParameterValue } from "./default-parameters.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Parameters = Record<string, string>;

/** PostgreSQL's own parameters. */
export const checkParameters: ClusterRule = (cluster) => {
  const parameters = cluster.spec.postgresql?.parameters ?? {};
  return [
    ...checkNames(cluster, parameters),
    ...checkWalLevel(cluster, parameters),
    ...checkSharedBuffers(parameters),
    ...checkBooleans(cluster, parameters),
    ...checkWalSizes(cluster, parameters),
  ];
};

/** Where a parameter is reported. */
export function parameterPath(name: string): string {
  return `spec.postgresql.parameters.${name}`;
}

const parameterName = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?$/;

function checkNames(cluster: Cluster, parameters: Parameters): FieldIssue[] {
  return Object.entries(parameters).flatMap(([name, value]) => [
    ...when(
      !parameterName.test(name),
      invalid(
        parameterPath(name),
        name,
        "must be a valid PostgreSQL configuration parameter name (a GUC name, optionally namespaced with a single dot)",
      ),
    ),
    ...when(
      fixedParameters.has(name) && value !== fixedParameterValue(cluster, name),
      invalid(parameterPath(name), value, "Can't set fixed configuration parameter"),
    ),
  ]);
}

function checkWalLevel(cluster: Cluster, parameters: Parameters): FieldIssue[] {
  const level = parameters["wal_level"];
  if (level === undefined) return [];
  const path = parameterPath("wal_level");
  if (!["logical", "replica", "minimal"].includes(level))
    return [invalid(path, level, "unrecognized `wal_level` value - allowed values: `logical`, `replica`, `minimal`")];
  if (level !== "minimal") return [];
  const needsMore = cluster.spec.instances > 1 || archiveMode(cluster) !== "off" || isReplicaCluster(cluster);
  const senders = parameters["max_wal_senders"];
  return [
    ...when(
      needsMore,
      invalid(
        path,
        level,
        "`wal_level` should be set at `logical` or `replica` when `archive_mode` is `on`, " +
          "'.instances' field is greater than 1, or this is a replica cluster",
      ),
    ),
    ...when(
      senders !== "0",
      invalid(
        parameterPath("max_wal_senders"),
        senders ?? "",
        "`max_wal_senders` should be set at `0` when `wal_level` is `minimal`",
      ),
    ),
  ];
}

function checkSharedBuffers(parameters: Parameters): FieldIssue[] {
  const value = parameters["shared_buffers"];
  return when(
    value !== undefined && parseMemory(value) === undefined,
    invalid(
      parameterPath("shared_buffers"),
      value,
      "Invalid value for configuration parameter shared_buffers. More info on accepted values format: " +
        "https://www.postgresql.org/docs/current/config-setting.html#CONFIG-SETTING-NAMES-VALUES",
    ),
  );
}

function checkBooleans(cluster: Cluster, parameters: Parameters): FieldIssue[] {
  const issues = ["hot_standby_feedback", "sync_replication_slots", "wal_log_hints"].flatMap((name) => {
    const value = parameters[name];
    return when(
      value !== undefined && parsePostgresBoolean(value) === undefined,
      invalid(parameterPath(name), value, `invalid \`${name}\` value. Must be a postgres boolean`),
    );
  });
  const hints = parameters["wal_log_hints"];
  return [
    ...issues,
    ...when(
      hints !== undefined && parsePostgresBoolean(hints) === false && cluster.spec.instances > 1,
      invalid(parameterPath("wal_log_hints"), hints, "`wal_log_hints` must be set to `on` when `instances` > 1"),
    ),
  ];
}

const walSizeDefaults = { min_wal_size: "80MB", max_wal_size: "1GB" } as const;
type WalSize = keyof typeof walSizeDefaults;

function checkWalSizes(cluster: Cluster, parameters: Parameters): FieldIssue[] {
  const names: readonly WalSize[] = ["min_wal_size", "max_wal_size"];
  const size = (name: WalSize) => parseMemory(parameters[name] ?? walSizeDefaults[name]);
  const malformed = names
    .filter((name) => size(name) === undefined)
    .map((name) => invalid(parameterPath(name), parameters[name], `Invalid value for configuration parameter ${name}`));
  const [min, max] = [size("min_wal_size"), size("max_wal_size")];
  return [
    ...malformed,
    ...when(
      min !== undefined && max !== undefined && min >= max,
      invalid(
        parameterPath("min_wal_size"),
        parameters["min_wal_size"] ?? walSizeDefaults.min_wal_size,
        "Invalid vale. Parameter min_wal_size (default 80MB) should be smaller than parameter max_wal_size (default 1GB)",
      ),
    ),
    ...names.flatMap((name) => checkAgainstVolume(cluster, name, parameters[name], size(name))),
  ];
}

function checkAgainstVolume(
  cluster: Cluster,
  name: WalSize,
  text: string | undefined,
  bytes: bigint | undefined,
): FieldIssue[] {
  const { walStorage } = cluster.spec;
  const request = walStorage?.size || walStorage?.pvcTemplate?.resources?.requests?.["storage"];
  const volume = request === undefined ? undefined : parseQuantity(request);
  if (text === undefined || bytes === undefined || volume === undefined) return [];
  return when(
    // A quantity counts in billionths.
    bytes * 1_000_000_000n >= volume,
    invalid(
      parameterPath(name),
      text,
      `Invalid value. Parameter ${name} (default ${walSizeDefaults[name]}) should be smaller than WAL volume size`,
    ),
  );
}
