import { createConnection } from "node:net";

/** What a server answers to a connection attempt, in the words of pg_isready. */
export type PingResult = "accepting" | "rejecting" | "noResponse";

export interface PingTarget {
  /** Folder of the unix socket. */
  socketDir: string;
  port: number;
  timeoutMs?: number;
  user?: string;
  database?: string;
}

/** SQLSTATE of a server that starts, stops or recovers. */
const cannotConnectNow = "57P03";

function startupMessage(user: string, database: string): Buffer {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0\0`, "utf8");
  const message = Buffer.alloc(8 + parameters.length);
  message.writeInt32BE(message.length, 0);
  // Protocol 3.0.
  message.writeInt32BE(196_608, 4);
  parameters.copy(message, 8);
  return message;
}

function classify(answer: Buffer): PingResult {
  // Anything but "cannot connect now" proves a server that takes connections, a refused password included.
  if (String.fromCharCode(answer[0] ?? 0) !== "E") return "accepting";
  const fields = answer.subarray(5).toString("utf8").split("\0");
  return fields.includes(`C${cannotConnectNow}`) ? "rejecting" : "accepting";
}

/** Asks a server on a unix socket whether it accepts connections, as pg_isready does but without a process. */
export function pingServer(target: PingTarget): Promise<PingResult> {
  return new Promise((resolve) => {
    const socket = createConnection(`${target.socketDir}/.s.PGSQL.${target.port}`);
    let received: Buffer = Buffer.alloc(0);
    const finish = (result: PingResult) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(target.timeoutMs ?? 3_000, () => finish("noResponse"));
    socket.on("connect", () => socket.write(startupMessage(target.user ?? "postgres", target.database ?? "postgres")));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 5) return;
      const length = received.readInt32BE(1);
      if (received.length >= 1 + length) finish(classify(received));
    });
    socket.on("error", () => finish("noResponse"));
    socket.on("close", () => finish("noResponse"));
  });
}
