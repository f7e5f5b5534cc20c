import { fixedParameters } from "./parameters.ts";

/** Settings of replication and recovery, which the Cluster decides too. */
const replication =
  /^(restore_command|recovery_target.*|primary_conninfo|primary_slot_name|archive_command|archive_library)$/;

/**
 * `postgresql.auto.conf` of a copied server without what the Cluster decides. It is read last: the old server's
 * archive_command, for example, would send the new cluster's WAL into the old one's archive.
 */
export function stripFixedSettings(text: string): { text: string; removed: string[] } {
  const removed: string[] = [];
  const kept = text.split("\n").filter((line) => {
    const name = /^\s*([A-Za-z_][\w.]*)\s*(=|\s)/.exec(line)?.[1]?.toLowerCase();
    if (name === undefined || !(fixedParameters.has(name) || replication.test(name))) return true;
    removed.push(name);
    return false;
  });
  return { text: kept.join("\n"), removed };
}
