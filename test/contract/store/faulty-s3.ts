import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

/**
 * What the proxy does with one request: passes it on, or answers in the server's place. `passThenCut` lets it take effect and loses
 * the answer; `passHalf` loses the second half of the answer's body.
 */
export type Fault = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
) => "pass" | "passThenCut" | "passHalf" | "answered";

/** A proxy in front of a real S3 server that misbehaves when told to. */
export interface FaultyS3 {
  readonly endpoint: string;
  fault: Fault;
  /** Requests seen, as `METHOD path`. */
  readonly seen: string[];
  stop(): Promise<void>;
}

/** Starts the proxy. */
export async function startFaultyS3(targetPort: number, tls?: { cert: string; key: string }): Promise<FaultyS3> {
  const seen: string[] = [];
  const faulty = { fault: (() => "pass") as Fault };
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    const wish = faulty.fault(incoming, outgoing);
    if (wish === "answered") {
      incoming.resume();
      return;
    }
    // The host header stays that of the client: its signature covers it.
    const options = {
      host: "127.0.0.1",
      port: targetPort,
      method: incoming.method,
      path: incoming.url,
      headers: incoming.headers,
    };
    const onward = request(options, (answer) => {
      if (wish === "passThenCut") {
        answer.resume();
        outgoing.destroy();
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      if (wish === "passHalf") cutInHalf(answer, outgoing);
      else answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  };
  const server: Server = tls ? createTlsServer(tls, serve) : createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    seen,
    get fault() {
      return faulty.fault;
    },
    set fault(fault: Fault) {
      faulty.fault = fault;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function cutInHalf(answer: IncomingMessage, outgoing: ServerResponse): void {
  let left = Math.floor(Number(answer.headers["content-length"] ?? 0) / 2);
  answer.on("data", (chunk: Buffer) => {
    outgoing.write(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) answer.destroy();
  });
  answer.on("close", () => outgoing.socket?.end());
}

/** Answers with a status and, if given, an S3 error document of that code. */
export function answerWith(status: number, code?: string): Fault {
  return (_incoming, outgoing) => {
    const body =
      code === undefined
        ? "<html>a proxy</html>"
        : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>told to</Message></Error>`;
    outgoing.writeHead(status, { "content-type": code === undefined ? "text/html" : "application/xml" });
    outgoing.end(body);
    return "answered";
  };
}
