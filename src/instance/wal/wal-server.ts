import { chmod, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import { encodeFrame, FrameReader } from "../../process/frame.ts";
import type { WalAnswer, WalRequests } from "./wal-requests.ts";

type Answers = Pick<WalRequests, "archive" | "restore">;

async function answerFrame(requests: Answers, frame: readonly string[]): Promise<WalAnswer> {
  const [verb, name, second] = frame;
  if (verb === "wal-archive" && name) return requests.archive(name);
  if (verb === "wal-restore" && name && second) return requests.restore(name, second);
  return { code: 1, message: `unknown request ${verb ?? ""}` };
}

/** Serves the archive and restore commands over a unix socket (ADR 0001); one request a connection. */
export class WalServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(requests: Answers, logger: Logger) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      const reader = new FrameReader();
      let answered = false;
      socket.on("close", () => this.#sockets.delete(socket));
      // A client that was killed is no event.
      socket.on("error", () => socket.destroy());
      socket.on("data", (chunk) => {
        let frames: string[][];
        try {
          frames = reader.push(chunk);
        } catch {
          socket.destroy();
          return;
        }
        const [frame] = frames;
        if (!frame || answered) return;
        answered = true;
        void answerFrame(requests, frame)
          .catch((error): WalAnswer => {
            logger.error("A WAL request failed", { request: frame[0], name: frame[1], error });
            return { code: 1, message: error instanceof Error ? error.message : String(error) };
          })
          .then(({ code, message, level }) =>
            socket.end(encodeFrame([String(code), message, ...(level === undefined ? [] : [level])])),
          );
      });
    });
  }

  async listen(files: Files, path: string): Promise<void> {
    await files.makeDirectory(dirname(path), 0o700);
    await rm(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, () => resolve());
    });
    await chmod(path, 0o600);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }
}
