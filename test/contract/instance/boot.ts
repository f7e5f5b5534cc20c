import { expect } from "vitest";
import type { Lab, LabInstance } from "./lab.ts";

type Start = (instance: LabInstance) => void | Promise<void>;

const run: Start = (instance) => instance.run();

export interface BootOptions {
  /** How the manager is started. @default alone, once */
  start?: Start;
  /** Checksums of pages, which a rewind needs. @default true */
  checksums?: boolean;
}

/** Makes an instance the first primary, with a database for an application, and lets `-rw` lead to it. */
export async function bootPrimary(lab: Lab, instance: LabInstance, options: BootOptions = {}): Promise<void> {
  const { start = run, checksums = true } = options;
  const flags = `--initdb-flags=--encoding=UTF8 --locale=C${checksums ? " -k" : ""}`;
  const initdb = instance.job("initdb", [flags, "--app-db-name=app", "--app-user=app"]);
  expect(await initdb.exit, instance.output.slice(-2000)).toBe(0);
  lab.route(instance);
  await start(instance);
  await instance.ready();
}

/** Makes an instance a standby of what `-rw` leads to. */
export async function bootStandby(instance: LabInstance, start: Start = run): Promise<void> {
  const join = instance.job("join", ["--parent-node", "127.0.0.1"]);
  expect(await join.exit, instance.output.slice(-2000)).toBe(0);
  await start(instance);
  await instance.ready();
}
