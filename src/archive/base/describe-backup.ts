import { type BackupInfo, emptyBackupInfo } from "../../barman/backup-info.ts";
import { buildCopyStats, type CopyStats } from "../../barman/copy-stats.ts";
import { formatWalSegment, walSegmentOfLsn } from "../../postgres/wal-name.ts";
import type { BackupBegin, BackupEnd, ServerFacts } from "./backup-session.ts";

/** What is known of a backup so far; each moment writes what it knows. */
export interface BackupProgress {
  facts: ServerFacts;
  begin: BackupBegin;
  end?: BackupEnd;
}

/** The `backup.info` right after the begin. */
export function startedInfo({ facts, begin }: BackupProgress): BackupInfo {
  const { segmentBytes } = facts;
  return {
    ...emptyBackupInfo,
    beginOffset: offsetIn(begin.lsn, segmentBytes),
    beginTime: begin.time,
    beginWal: formatWalSegment(walSegmentOfLsn(begin.timeline, begin.lsn, segmentBytes)),
    beginXlog: begin.lsn,
    clusterSize: facts.clusterBytes,
    configFile: facts.configFile,
    dataChecksums: facts.dataChecksums,
    hbaFile: facts.hbaFile,
    identFile: facts.identFile === "" ? null : facts.identFile,
    includedFiles: facts.includedFiles.length === 0 ? null : facts.includedFiles,
    pgdata: facts.dataFolder,
    serverName: "cloud",
    status: "STARTED",
    summarizeWal: facts.summarizeWal,
    systemid: facts.systemId,
    tablespaces: facts.tablespaces.length === 0 ? null : facts.tablespaces,
    timeline: begin.timeline,
    version: facts.serverVersion,
    xlogSegmentSize: segmentBytes,
  };
}

/** The `backup.info` of a complete backup. */
export function doneInfo(
  progress: BackupProgress & { end: BackupEnd },
  name: string,
  copyStats: CopyStats,
): BackupInfo {
  return { ...withEnd(progress), backupName: name, copyStats: buildCopyStats(copyStats), status: "DONE" };
}

/** The `backup.info` of a backup that failed. It shows no end, which some readers take for success. */
export function failedInfo(progress: BackupProgress, name: string, action: string, error: unknown): BackupInfo {
  const message = (error instanceof Error ? error.message : String(error)).split(/[\r\n]/)[0]?.trim() ?? "";
  return {
    ...startedInfo(progress),
    backupName: name,
    error: `failure ${action} (${message})`,
    status: "FAILED",
  };
}

function withEnd(progress: BackupProgress & { end: BackupEnd }): BackupInfo {
  const { facts, end } = progress;
  return {
    ...startedInfo(progress),
    backupLabel: end.label,
    endOffset: offsetIn(end.lsn, facts.segmentBytes),
    endTime: end.time,
    endWal: formatWalSegment(walSegmentOfLsn(end.timeline, end.lsn, facts.segmentBytes)),
    endXlog: end.lsn,
  };
}

function offsetIn(lsn: bigint, segmentBytes: number): number {
  return Number(lsn % BigInt(segmentBytes));
}
