import { type ArchiveRecord, formatArchiveRecord, parseArchiveRecord } from "../barman/archive-record.ts";
import type { Files } from "../ports/files.ts";

const suffix = ".archived";
const emptyCheckFile = "archive-was-empty";

/** The durable records of one archiver: a file each, written through fsync, mirrored in memory. One process owns the folder. */
export class RecordFolder {
  readonly #files: Files;
  readonly #folder: string;
  readonly #records = new Map<string, ArchiveRecord>();
  #loaded: Promise<void> | undefined;

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  async get(name: string): Promise<ArchiveRecord | undefined> {
    await this.#load();
    return this.#records.get(name);
  }

  async names(): Promise<string[]> {
    await this.#load();
    return [...this.#records.keys()];
  }

  async put(record: ArchiveRecord): Promise<void> {
    await this.#load();
    await this.#files.writeAtomic(this.#path(record.name), formatArchiveRecord(record), 0o600);
    this.#records.set(record.name, record);
  }

  async remove(name: string): Promise<void> {
    await this.#load();
    // From memory first: a record that is on disk alone speaks again only after a restart, and then it is checked again.
    this.#records.delete(name);
    await this.#files.remove(this.#path(name));
  }

  /** Whether this archive was once found empty, as this system must find it; the text tells the archive and system apart. */
  async wasEmpty(scope: string): Promise<boolean> {
    await this.#load();
    return (await this.#files.read(`${this.#folder}/${emptyCheckFile}`)) === `${scope}\n`;
  }

  async noteEmpty(scope: string): Promise<void> {
    await this.#load();
    await this.#files.writeAtomic(`${this.#folder}/${emptyCheckFile}`, `${scope}\n`, 0o600);
  }

  async forgetEmpty(): Promise<void> {
    await this.#files.remove(`${this.#folder}/${emptyCheckFile}`);
  }

  #path(name: string): string {
    return `${this.#folder}/${name}${suffix}`;
  }

  #load(): Promise<void> {
    this.#loaded ??= this.#read().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #read(): Promise<void> {
    await this.#files.makeDirectory(this.#folder, 0o700);
    for (const file of await this.#files.list(this.#folder)) {
      if (file === emptyCheckFile) continue;
      const text = file.endsWith(suffix) ? await this.#files.read(`${this.#folder}/${file}`) : undefined;
      const record = text === undefined ? undefined : parseArchiveRecord(text);
      if (record && file === `${record.name}${suffix}`) this.#records.set(record.name, record);
      // Left by a crash in the middle of a write: it proves nothing.
      else await this.#files.remove(`${this.#folder}/${file}`);
    }
  }
}
