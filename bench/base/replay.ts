import { execFile } from "node:child_process";
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { buildLauncher } from "../../launcher/build.ts";
import { parseWalSegment } from "../../src/postgres/wal-name.ts";
import type { PostgresServer } from "../../test/support/postgres-server.ts";
import { startRestored } from "../../test/support/restored-server.ts";

const run = promisify(execFile);

/** Brings one file to a path; false when the archive has none. */
export type FetchWal = (name: string, destination: string) => Promise<boolean>;

/** How a replay went. */
export interface Replay {
  segments: number;
  seconds: number;
  /** Share of the time that PostgreSQL waited for WAL, from its request to the end of the command. */
  waiting: number;
}

interface Watch {
  firstMs: number | undefined;
  lastMs: number;
  waitingMs: number;
  segments: number;
}

/** Replays all WAL of an archive on a restored copy, each file asked for as in a pod: by the launcher, over a socket. */
export async function replay(restore: (dataFolder: string) => Promise<void>, fetch: FetchWal): Promise<Replay> {
  const root = await mkdtemp(join(tmpdir(), "bench-replay-"));
  await chmod(root, 0o755);
  await mkdir(join(root, "ipc"), { mode: 0o755 });
  const manager = join(root, "manager");
  await copyFile(await buildLauncher(), manager);
  const watch: Watch = { firstMs: undefined, lastMs: 0, waitingMs: 0, segments: 0 };
  const listener = await listen(join(root, "ipc", "wal.sock"), fetch, watch);
  let server: PostgresServer | undefined;
  try {
    server = await startRestored({
      async restore(dataFolder) {
        await restore(dataFolder);
      },
      recovery: { restore_command: `${manager} wal-restore %f %p`, max_wal_size: "4GB", shared_buffers: "256MB" },
    });
    while (await isRecovering(server)) await sleep(200);
    const seconds = (watch.lastMs - (watch.firstMs ?? 0)) / 1000;
    const commandMs = (await commandCost(manager)) * watch.segments;
    return { segments: watch.segments, seconds, waiting: (watch.waitingMs + commandMs) / (seconds * 1000) };
  } finally {
    await server?.stop();
    listener.close();
    await rm(root, { recursive: true, force: true });
  }
}

async function listen(path: string, fetch: FetchWal, watch: Watch): Promise<Server> {
  const server = createServer((socket) => {
    let received = Buffer.alloc(0);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 4 || received.length < 4 + received.readUInt32BE(0)) return;
      const [, name = "", destination = "", cwd = ""] = received.toString("utf8", 4).split("\0");
      // The question of `commandCost`, which nobody has to work for.
      if (destination === "/dev/null") answer(socket, "0");
      else void serve(name, join(cwd, destination)).then((code) => answer(socket, code));
    });
  });
  async function serve(name: string, destination: string): Promise<string> {
    const begin = performance.now();
    const found = await fetch(name, destination);
    const end = performance.now();
    if (found) await giveToServer(destination);
    if (found && parseWalSegment(name)) {
      watch.firstMs ??= begin;
      watch.lastMs = end;
      watch.waitingMs += end - begin;
      watch.segments += 1;
    }
    return found ? "0" : "1";
  }
  await new Promise<void>((resolve) => server.listen(path, resolve));
  await chmod(path, 0o777);
  return server;
}

/** In a pod engine and server are one user, so this is not part of the wait. */
async function giveToServer(path: string): Promise<void> {
  const { uid, gid } = await stat(dirname(path));
  await chown(path, uid, gid);
}

function answer(socket: Socket, code: string): void {
  const body = Buffer.from(`${code}\0`);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  socket.end(Buffer.concat([head, body]));
}

/** Milliseconds of the command itself, from its start to its end. */
async function commandCost(manager: string): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < 20; at++) {
    const begin = performance.now();
    await run(manager, ["wal-restore", "000000010000000000000001", "/dev/null"]);
    times.push(performance.now() - begin);
  }
  return times.sort((a, b) => a - b)[10] ?? 0;
}

async function isRecovering(server: PostgresServer): Promise<boolean> {
  const where = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres"];
  const { stdout } = await run(join(server.binDir, "psql"), [
    ...where,
    "-Atqc",
    "select pg_is_in_recovery()",
    "postgres",
  ]);
  return stdout.trim() === "t";
}
