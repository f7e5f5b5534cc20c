import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** What becomes of a file that PostgreSQL's command asks for; it is given the file's name and its path as PostgreSQL says it. */
export type BridgeAnswer = (name: string, path: string) => Promise<boolean>;

/** Lets a server's archive_command or restore_command wait for an answer from this process. */
export interface CommandBridge {
  /** For the server's configuration. */
  readonly command: string;
  stop(): Promise<void>;
}

/** Opens a bridge by files in a folder that the server may write to. */
export async function openBridge(folder: string, answer: BridgeAnswer): Promise<CommandBridge> {
  await mkdir(folder, { recursive: true, mode: 0o777 });
  const at = (name: string) => join(folder, name);
  let stopped = false;
  const serve = async () => {
    while (!stopped) {
      const asked = (await readdir(folder)).filter((name) => name.endsWith(".want"));
      for (const file of asked) {
        const name = file.slice(0, -".want".length);
        const path = (await readFile(at(file), "utf8")).trim();
        if (path === "") continue;
        await rm(at(file));
        const done = await answer(name, path).catch(() => false);
        await writeFile(at(`${name}.${done ? "yes" : "no"}`), "");
      }
      await sleep(20);
    }
  };
  const served = serve();
  const [yes, no] = [`${at("%f")}.yes`, `${at("%f")}.no`];
  const wait = `until [ -e ${yes} ] || [ -e ${no} ]; do sleep 0.05; done`;
  return {
    command: `rm -f ${yes} ${no}; echo %p > ${at("%f")}.want; ${wait}; test -e ${yes}`,
    async stop() {
      stopped = true;
      await served;
    },
  };
}
