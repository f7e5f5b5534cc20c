import type { IncomingMessage, ServerResponse } from "node:http";

export interface HttpAnswer {
  status: number;
  body: string;
  contentType?: string;
}

/** What a handler may do before it answers. */
export interface HttpExchange {
  /** Lets a client that asked first (`Expect: 100-continue`) send its body; without effect for the others. */
  proceed(): void;
}

/** Answers one request; `undefined` means that the path is not known. */
export type HttpHandler = (
  request: IncomingMessage,
  url: URL,
  exchange: HttpExchange,
) => Promise<HttpAnswer | undefined>;

export function textAnswer(status: number, body: string): HttpAnswer {
  return { status, body };
}

export function jsonAnswer(status: number, value: unknown): HttpAnswer {
  return { status, body: JSON.stringify(value), contentType: "application/json" };
}

/** Longest request body of our small interfaces, in bytes. */
const maxBodyBytes = 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > maxBodyBytes) throw new Error("request body is too long");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Whatever a client sends and however a handler fails, the request is answered: nothing may end the runtime from here. */
async function answerTo(handler: HttpHandler, request: IncomingMessage, exchange: HttpExchange): Promise<HttpAnswer> {
  const target = request.url ?? "/";
  // A target such as `//` is legal in HTTP and no URL.
  const url = URL.parse(target, "http://localhost");
  if (!url) return textAnswer(400, "the request target is not a path\n");
  try {
    return (await handler(request, url, exchange)) ?? textAnswer(404, "404 page not found\n");
  } catch (error) {
    return textAnswer(500, error instanceof Error ? error.message : String(error));
  }
}

/**
 * Turns a handler into a listener: targets that are no path are 400, unknown paths 404, failures 500 with their text.
 * `asked`: for clients that wait for a word before they send their body.
 */
export function listenerOf(
  handler: HttpHandler,
  { asked = false } = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const exchange = { proceed: () => (asked ? response.writeContinue() : undefined) };
    answerTo(handler, request, exchange)
      .then((answer) => {
        response.writeHead(answer.status, {
          "content-type": answer.contentType ?? "text/plain; charset=utf-8",
          "content-length": Buffer.byteLength(answer.body),
        });
        response.end(answer.body);
      })
      .catch(() => response.destroy());
  };
}
