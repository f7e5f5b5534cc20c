import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** What an issuer was asked. */
export interface TokenQuestion {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  /** Fields of a form, if it was one. */
  form: URLSearchParams;
  body: string;
}

/** A stand-in for metadata servers and issuers of tokens, on a loopback port. */
export interface TokenServer {
  readonly url: string;
  readonly asked: TokenQuestion[];
  /** What it answers; `undefined` for 404. */
  answer: (question: TokenQuestion) => { status?: number; body: unknown; type?: string } | undefined;
  stop(): Promise<void>;
}

/** Starts the stand-in. */
export async function startTokenServer(): Promise<TokenServer> {
  const asked: TokenQuestion[] = [];
  const standIn = { answer: (() => undefined) as TokenServer["answer"] };
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://stand-in");
    const question = {
      method: incoming.method ?? "",
      path: pathname,
      query: searchParams,
      headers: incoming.headers,
      form: new URLSearchParams(body),
      body,
    };
    asked.push(question);
    const answer = standIn.answer(question);
    const text = typeof answer?.body === "string" ? answer.body : JSON.stringify(answer?.body ?? {});
    outgoing.writeHead(answer ? (answer.status ?? 200) : 404, { "content-type": answer?.type ?? "application/json" });
    outgoing.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    get answer() {
      return standIn.answer;
    },
    set answer(answer) {
      standIn.answer = answer;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An access token as Azure's directory issues them; nobody checks its signature here. */
export function azureToken(subject: string): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    aud: "https://storage.azure.com",
    iss: "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
    sub: subject,
    iat: now - 60,
    nbf: now - 60,
    exp: now + 3600,
  };
  const parts = [{ alg: "RS256", typ: "JWT" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  return [...parts, Buffer.from("signature").toString("base64url")].join(".");
}
