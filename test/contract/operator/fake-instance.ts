import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { PostgresStatus } from "../../../src/api/pg-status.ts";
import { aStatus } from "../../unit/plan/cluster/fixtures.ts";

/** The pod side of one instance as the operator sees it: an HTTPS server on a loopback address of its own. */
export interface FakeInstance {
  readonly name: string;
  readonly ip: string;
  /** What the next status call is answered with; `null` closes the connection instead. */
  status: PostgresStatus | null;
  /** Laid over the status in every answer. */
  override: Partial<PostgresStatus>;
  /** Requests are taken and never answered, as behind a network that swallows packets. */
  hangs: boolean;
  /** Answers to other paths, by method and path; 404 for those that are not there. */
  answers: Record<string, () => { status: number; body: string }>;
  /** Takes another instance manager, and answers or ends the connection; 404 where it is absent. */
  update?: (archive: Buffer) => { status: number; body: string } | "take over";
  /** Requests so far. */
  calls: number;
  stop(): Promise<void>;
}

export async function startFakeInstance(options: {
  name: string;
  ip: string;
  certificate: string;
  privateKey: string;
}): Promise<FakeInstance> {
  const instance: FakeInstance = {
    name: options.name,
    ip: options.ip,
    status: aStatus(),
    override: {},
    hangs: false,
    answers: {},
    calls: 0,
    stop: () => close(server),
  };
  const server = createServer(
    {
      cert: options.certificate,
      key: options.privateKey,
      minVersion: "TLSv1.3",
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      instance.calls += 1;
      if (instance.hangs) return;
      if (!instance.status) return request.socket.destroy();
      if (request.url === "/update" && instance.update) return takeManager(instance.update, request, response);
      const other = instance.answers[`${request.method} ${request.url}`]?.();
      if (other) {
        response.writeHead(other.status, { "content-type": "application/json" });
        response.end(other.body);
        return;
      }
      response.writeHead(request.url === "/pg/status" ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...instance.status, ...instance.override }));
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(8000, options.ip, resolve);
  });
  return instance;
}

function takeManager(
  update: NonNullable<FakeInstance["update"]>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const answer = update(Buffer.concat(parts));
    if (answer === "take over") request.socket.destroy();
    else response.writeHead(answer.status).end(answer.body);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
