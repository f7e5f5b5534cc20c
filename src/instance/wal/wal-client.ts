import { createConnection } from "node:net";
import { encodeFrame, FrameReader } from "../../process/frame.ts";
import type { WalAnswer } from "./wal-requests.ts";

/** Asks the resident manager over its socket, as the launcher does; for when the launcher is not what PostgreSQL calls. */
export function askWalServer(socketPath: string, fields: readonly string[]): Promise<WalAnswer> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath);
    const reader = new FrameReader();
    const fail = (message: string) => resolve({ code: 1, message });
    socket.on("connect", () => socket.write(encodeFrame(fields)));
    socket.on("data", (chunk) => {
      const [frame] = reader.push(chunk);
      if (!frame) return;
      const code = Number(frame[0]);
      resolve({ code: Number.isInteger(code) ? code : 1, message: frame[1] ?? "" });
      socket.end();
    });
    socket.on("error", (error) => fail(`the instance manager does not answer: ${error.message}`));
    socket.on("close", () => fail("the instance manager closed the connection"));
  });
}
