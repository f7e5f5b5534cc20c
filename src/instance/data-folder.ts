import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import type { Processes } from "../ports/processes.ts";
import { type ControlData, parseControlData } from "../postgres/control-data.ts";
import { parsePgVersionFile } from "../postgres/pg-version.ts";
import type { InstancePaths } from "./instance-paths.ts";

/** Reads what PGDATA says about itself. */
export class DataFolder {
  readonly #files: Files;
  readonly #processes: Processes;
  readonly #paths: InstancePaths;
  readonly #environment: Record<string, string>;
  #knownRole: "primary" | "standby" | undefined;

  constructor(files: Files, processes: Processes, paths: InstancePaths, environment: Readonly<Record<string, string>>) {
    this.#files = files;
    this.#processes = processes;
    this.#paths = paths;
    this.#environment = { ...environment, LC_ALL: "C" };
  }

  exists(): Promise<boolean> {
    return this.#files.exists(this.#paths.pgData);
  }

  /** The role as last read; `undefined` before the first time. */
  get knownRole(): "primary" | "standby" | undefined {
    return this.#knownRole;
  }

  /** Role by files: without `standby.signal` (or an old `recovery.conf`) it is a primary's. */
  async role(): Promise<"primary" | "standby"> {
    this.#knownRole = await this.#readRole();
    return this.#knownRole;
  }

  async #readRole(): Promise<"primary" | "standby"> {
    const signs = [this.#paths.standbySignal, `${this.#paths.pgData}/recovery.conf`];
    for (const sign of signs) if (await this.#files.exists(sign)) return "standby";
    return "primary";
  }

  async major(): Promise<number> {
    const text = await this.#files.read(this.#paths.pgVersion);
    const major = text === undefined ? undefined : parsePgVersionFile(text);
    if (major === undefined) {
      throw new Error(
        `${this.#paths.pgVersion} is ${text === undefined ? "missing" : "unreadable"}: PGDATA is not a data folder`,
      );
    }
    return major;
  }

  /** Output of pg_controldata; throws with its error text when the control file is missing or broken. */
  async controlText(): Promise<string> {
    const result = await this.#processes.run("pg_controldata", ["-D", this.#paths.pgData], { env: this.#environment });
    if (result.code !== 0)
      throw new Error(`pg_controldata failed: ${result.stderr.trim() || `exit code ${result.code}`}`);
    return result.stdout;
  }

  /** Whether pg_controldata accepts the folder; throws when it could not be asked, which says nothing about the data. */
  async isAccepted(): Promise<boolean> {
    const { code, signal } = await this.#processes.run("pg_controldata", ["-D", this.#paths.pgData], {
      env: this.#environment,
    });
    if (code === null) {
      throw new Error(`pg_controldata was ended by ${signal ?? "a signal"}: ${this.#paths.pgData} is left as it is`);
    }
    return code === 0;
  }

  /** Whether the control file is there and holds anything. */
  async controlFile(): Promise<"absent" | "empty" | "filled"> {
    const text = await this.#files.read(this.#paths.controlFile);
    if (text === undefined) return "absent";
    return text === "" ? "empty" : "filled";
  }

  async control(): Promise<ControlData> {
    return parseControlData(await this.controlText());
  }

  /** The control data, or `undefined` when it can't be read. */
  async tryControl(): Promise<ControlData | undefined> {
    try {
      return await this.control();
    } catch {
      return undefined;
    }
  }

  /** Writes the control data to the log, as support expects it around start and stop. */
  async logControl(logger: Logger, reason: string): Promise<void> {
    try {
      logger.info("Extracting pg_controldata information", { reason });
      logger.info((await this.controlText()).trimEnd(), { logger: "pg_controldata" });
    } catch (error) {
      logger.warning("pg_controldata information is not available", { error, reason });
    }
  }
}
