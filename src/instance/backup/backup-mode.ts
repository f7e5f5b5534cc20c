import { isBackupDone } from "../../api/backup-phases.ts";
import { resources } from "../../kube/resources.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type BackupModeData, type BackupModeRequest, ModeSession } from "./mode-session.ts";

/** Why a request is not done; the codes are those of the reference. */
export interface BackupModeFailure {
  code:
    | "ANOTHER_REQUEST_IN_PROGRESS"
    | "CANNOT_INITIALIZE_CONNECTION"
    | "NO_ONGOING_BACKUP"
    | "NOT_CURRENT_RUNNING_BACKUP"
    | "BACKUP_FAILED"
    | "CANNOT_CLOSE_NOT_STARTED";
  message: string;
}

export type BackupModeOutcome = { data: BackupModeData } | { failure: BackupModeFailure };

/** `data` is absent when there never was a backup, `error` unless it failed. */
export type BackupModeView = { data?: BackupModeData; error?: string } | { failure: BackupModeFailure };

/** How often a backup mode is looked after, in milliseconds. */
const lookMs = 60_000;
const requestLimitMs = 10_000;

/** The one backup mode that an instance may be in (reference: instance manager §6.4). */
export class BackupMode {
  readonly #context: InstanceContext;
  #session: ModeSession | undefined;
  #isAsked = false;
  /** Work that goes on after its request was answered. */
  #work: Promise<void> | undefined;

  constructor(context: InstanceContext) {
    this.#context = context;
  }

  /** Whether a backup is held open, which would end with this process. */
  get isOpen(): boolean {
    const session = this.#session;
    return session !== undefined && session.error === undefined && session.data.phase !== "completed";
  }

  /** The backup and what went wrong with it. */
  look(): Promise<BackupModeView> {
    return this.#alone<BackupModeView>(async () => {
      await this.#session?.check();
      if (!this.#session) return {};
      const { data, error } = this.#session;
      return { data, ...(error === undefined ? {} : { error }) };
    });
  }

  /** Starts a backup and gives up any other; the start itself goes on in the background. */
  start(request: BackupModeRequest): Promise<BackupModeOutcome> {
    return this.#alone<BackupModeOutcome>(async () => {
      await this.#session?.abort("another backup was asked for");
      this.#session = undefined;
      let session: ModeSession;
      try {
        session = await ModeSession.open(this.#context, request);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return failure("CANNOT_INITIALIZE_CONNECTION", message);
      }
      this.#session = session;
      const { data } = session;
      this.#follow(session, () => session.start());
      return { data };
    });
  }

  /** Ends the backup of that name; asking again is no failure. The end itself goes on in the background. */
  stop(backupName: string): Promise<BackupModeOutcome> {
    return this.#alone<BackupModeOutcome>(async () => {
      const session = this.#session;
      if (!session) return failure("NO_ONGOING_BACKUP", "this instance is in no backup mode");
      const { data } = session;
      if (data.backupName !== backupName) {
        return failure(
          "NOT_CURRENT_RUNNING_BACKUP",
          `the backup mode is that of ${data.backupName}, not ${backupName}`,
        );
      }
      if (session.error !== undefined) return failure("BACKUP_FAILED", session.error);
      if (data.phase === "closing" || data.phase === "completed") return { data };
      if (data.phase !== "started") return failure("CANNOT_CLOSE_NOT_STARTED", `its phase is ${data.phase}`);
      session.closing();
      this.#follow(session, () => session.stop());
      return { data: session.data };
    });
  }

  /** Gives up a backup mode whose session is gone or whose Backup needs it no more, for as long as the instance runs. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#context;
    while (!signal.aborted) {
      await clock.sleep(lookMs, signal).catch(() => undefined);
      if (signal.aborted) break;
      await this.tidy(signal).catch((error: unknown) =>
        logger.debug("A backup mode could not be looked after", { error }),
      );
    }
    await this.#session?.abort("the instance manager ends");
  }

  /** One look. */
  async tidy(signal: AbortSignal): Promise<void> {
    const session = this.#session;
    if (!session || session.data.phase === "completed") return;
    const reason = await this.#unneeded(session.request.backupName, signal);
    if (reason === undefined) return session.check();
    this.#context.logger.warning("A backup mode is given up", { backupName: session.request.backupName, reason });
    await session.abort(reason);
  }

  async #unneeded(name: string, signal: AbortSignal): Promise<string | undefined> {
    const { kube, settings } = this.#context;
    try {
      const key = { namespace: settings.namespace, name };
      const backup = await kube.get(resources.backups, key, { timeoutMs: requestLimitMs, signal });
      return isBackupDone(backup.status?.phase) ? `Backup ${name} is over: ${backup.status?.phase}` : undefined;
    } catch (error) {
      if (isKubeError(error, "notFound")) return `Backup ${name} is gone`;
      throw error;
    }
  }

  /** One request at a time, and none while the work of one goes on. */
  async #alone<T>(work: () => Promise<T>): Promise<T | { failure: BackupModeFailure }> {
    if (this.#isAsked || this.#work) {
      return failure("ANOTHER_REQUEST_IN_PROGRESS", "another request is in progress: ask again");
    }
    this.#isAsked = true;
    try {
      return await work();
    } finally {
      this.#isAsked = false;
    }
  }

  #follow(session: ModeSession, work: () => Promise<void>): void {
    const { logger } = this.#context;
    const { backupName } = session.request;
    this.#work = work().finally(() => {
      this.#work = undefined;
      const { phase } = session.data;
      if (session.error === undefined) logger.info("Backup mode", { backupName, phase });
      else logger.error("Backup mode failed", { backupName, phase, error: session.error });
    });
  }
}

function failure(code: BackupModeFailure["code"], message: string): { failure: BackupModeFailure } {
  return { failure: { code, message } };
}
