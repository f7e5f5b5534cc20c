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

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
