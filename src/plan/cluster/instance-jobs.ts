import type { Job, Pod } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";
import { phases } from "../../api/phases.ts";
import {
  buildFullRecoveryJob,
  buildInitdbJob,
  buildJoinJob,
  buildPgBaseBackupJob,
  buildSnapshotRecoveryJob,
} from "../../build/jobs.ts";
import { present } from "../../build/present.ts";
import type { PvcSources } from "../../build/pvcs.ts";
import { refTo } from "./actions.ts";
import { type BootstrapSource, chooseBootstrapSource } from "./bootstrap-source.ts";
import { instanceOfJob, isJobComplete, isJobFailed } from "./jobs.ts";
import { draftCluster, type Pass, setPhase, type Wait } from "./pass.ts";
import { isAlivePod, startProblem } from "./pods.ts";
import { reportProblems } from "./problems.ts";

/**
 * Makes the Job that fills an instance's empty volumes, for the first primary or for a replica. It is also the way back
 * when the operator ended between the volume and its Job.
 */
export function planInstanceJob(pass: Pass, instance: { instance: string; serial: number }): Wait | null {
  const isFirst = isFirstPrimary(pass, instance.instance);
  if (!isFirst && !canClone(pass)) {
    return { requeueAfterMs: 1_000, because: `${instance.instance} can be cloned once the primary is ready` };
  }
  const source = isFirst ? chooseBootstrapSource(pass.cluster, pass.observed) : undefined;
  if (source?.kind === "blocked") return { requeueAfterMs: source.requeueAfterMs, because: source.because };
  const job = source ? buildFirstJob(pass, source, instance.serial) : buildReplicaJob(pass, instance.serial);
  const leftover = pass.observed.jobs.find((it) => it.metadata.name === job.metadata.name);
  if (leftover) return planLeftoverRemoval(pass, leftover);
  const reason = isFirst
    ? `the first primary ${instance.instance} is to be made`
    : `${instance.instance} is to be cloned`;
  pass.actions.push({ kind: "create", object: { ...job }, mustOwn: true, reason });
  return null;
}

function isFirstPrimary({ status }: Pass, instance: string): boolean {
  return !status.currentPrimary && (status.targetPrimary ?? instance) === instance;
}

/** What the volumes of the first primary are filled from, when it comes from snapshots. */
export function firstPrimarySources(pass: Pass, instance: string): PvcSources | undefined {
  if (!isFirstPrimary(pass, instance)) return undefined;
  const source = chooseBootstrapSource(pass.cluster, pass.observed);
  return source.kind === "snapshots" ? source.sources : undefined;
}

function buildReplicaJob(pass: Pass, serial: number): Job {
  return buildJoinJob(draftCluster(pass), serial, pass.observed.operator.context);
}

function buildFirstJob(pass: Pass, source: Exclude<BootstrapSource, { kind: "blocked" }>, serial: number): Job {
  const cluster = draftCluster(pass);
  const { context } = pass.observed.operator;
  switch (source.kind) {
    case "initdb":
      return buildInitdbJob(cluster, serial, context);
    case "baseBackup":
      return buildPgBaseBackupJob(cluster, serial, context);
    case "archive":
      return buildFullRecoveryJob(cluster, serial, context, present({ endpointCa: source.endpointCa }));
    case "snapshots": {
      const { backupLabel, tablespaceMap, endpointCa } = source;
      return buildSnapshotRecoveryJob(cluster, serial, context, present({ backupLabel, tablespaceMap, endpointCa }));
    }
  }
}

/**
 * Whether replicas may be cloned: the primary is ready, or it has just been made and its pod runs. In the latter case the
 * clones' pods start meanwhile and wait for it, which saves a new cluster the time until the first readiness probe.
 */
export function canClone(pass: Pass): boolean {
  const primary = pass.status.currentPrimary;
  if (!primary || primary !== pass.status.targetPrimary) return false;
  if (isPrimaryWell(pass)) return true;
  const pod = pass.observed.pods.find((it) => it.metadata.name === primary);
  return pod !== undefined && isAlivePod(pod) && isFirstBoot(pass);
}

/** Whether the primary is settled, ready and answered in this pass; without that no instance's data may be given up. */
export function isPrimaryWell(pass: Pass): boolean {
  const { currentPrimary, targetPrimary } = pass.status;
  if (!currentPrimary || currentPrimary !== targetPrimary) return false;
  return pass.observed.instances.some((it) => it.kind === "answered" && it.ready && it.name === currentPrimary);
}

/** Whether the Job that made the first primary is still there: it goes when the cluster is healthy for the first time. */
export function isFirstBoot(pass: Pass): boolean {
  const firsts: (string | undefined)[] = ["initdb", "import", "full-recovery", "snapshot-recovery", "pgbasebackup"];
  return pass.observed.jobs.some(
    (it) =>
      isJobComplete(it) &&
      firsts.includes(it.metadata.labels?.[labels.jobRole]) &&
      instanceOfJob(it) === pass.status.currentPrimary,
  );
}

function planLeftoverRemoval(pass: Pass, job: Job): Wait {
  const because = `job ${job.metadata.name} of an earlier instance is still there`;
  if (!job.metadata.deletionTimestamp) planJobDeletion(pass, job, because, false);
  return { requeueAfterMs: 1_000, because };
}

/** Plans the deletion of a Job and its pods. */
export function planJobDeletion(pass: Pass, job: Job, reason: string, bestEffort: boolean): void {
  pass.actions.push({ kind: "delete", target: refTo(job), propagation: "Foreground", bestEffort, reason });
}

/**
 * Removes Jobs whose image cannot be started and is no longer the cluster's, so that they are made with the new one. Their
 * volumes stay: nothing has run on them.
 */
export function planStuckJobs(pass: Pass): Wait | null {
  const stuck = pass.observed.jobs
    .filter((it) => !isJobComplete(it) && !it.metadata.deletionTimestamp)
    .filter((job) => {
      // By name: a plugin may have put its own container before it.
      const role = job.metadata.labels?.[labels.jobRole];
      const image = job.spec?.template.spec?.containers.find((it) => it.name === role)?.image;
      const pods = pass.observed.jobPods.filter((pod) => isPodOf(job, pod));
      return image !== pass.status.image && pods.length > 0 && pods.every((pod) => startProblem(pod) !== undefined);
    });
  for (const job of stuck)
    planJobDeletion(pass, job, `job ${job.metadata.name} cannot start its outdated image`, false);
  return stuck.length > 0 ? { requeueAfterMs: 1_000, because: "jobs that cannot start are being made anew" } : null;
}

function isPodOf(job: Job, pod: Pod): boolean {
  const keys = [labels.instanceName, labels.jobRole];
  return keys.every((key) => pod.metadata.labels?.[key] === job.metadata.labels?.[key]);
}

/** A Job that gave up needs a person: which one, and where to look. */
export function waitForFailedJobs(pass: Pass): Wait | null {
  const failed = pass.observed.jobs.filter(isJobFailed).map((it) => it.metadata.name);
  if (failed.length === 0) return null;
  const because =
    `Instance creation failed for the following jobs: ${failed.join(", ")}. ` +
    "Check the job logs to investigate the cause of the failure.";
  setPhase(pass, phases.unrecoverable, because);
  return { requeueAfterMs: 5_000, because };
}

/** Waits for the Jobs that run; says which one cannot start, and why. */
export function waitForRunningJobs(pass: Pass): Wait | null {
  const running = pass.observed.jobs.filter((it) => !isJobComplete(it));
  if (running.length === 0) return null;
  const names = running.map((it) => it.metadata.name ?? "");
  const isPrimary = !pass.status.currentPrimary;
  const text = isPrimary
    ? `Creating primary instance ${running[0]?.metadata.labels?.[labels.instanceName] ?? ""}`
    : `Creating replica ${names.join(", ")}`;
  const problems = pass.observed.jobPods.map(startProblem).filter((it) => it !== undefined);
  reportProblems(pass, isPrimary ? phases.settingUpPrimary : phases.creatingReplica, text, problems);
  return { requeueAfterMs: 5_000, because: `${names.join(", ")} at work` };
}

/** Removes Jobs that are done; a failure to do so harms nothing. */
export function planFinishedJobs(pass: Pass): void {
  for (const job of pass.observed.jobs) {
    if (job.metadata.deletionTimestamp || !isJobComplete(job)) continue;
    planJobDeletion(pass, job, `job ${job.metadata.name} is done`, true);
  }
}
