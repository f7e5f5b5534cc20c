import { readFileSync } from "node:fs";
import { Agent, request } from "undici";
import type { ControlPlane } from "../../local/control-plane/control-plane.ts";

/** What the API server said to a request. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  /** Its own words when it refused. */
  readonly message: string;
}

/** A client that passes objects on exactly as they are and hands back every answer. */
export class ApiServer {
  readonly #url: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor(controlPlane: ControlPlane) {
    this.#url = controlPlane.url;
    this.#token = controlPlane.token;
    this.#agent = new Agent({ connect: { ca: readFileSync(controlPlane.caFile, "utf8") } });
  }

  async send(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: object): Promise<Answer> {
    const response = await request(`${this.#url}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: {
        authorization: `Bearer ${this.#token}`,
        "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
        accept: "application/json",
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.body.text();
    // Paths that nothing is served at are answered in plain words.
    const answer = text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : { message: text.trim() };
    const message = response.statusCode < 300 ? "" : String(answer["message"] ?? response.statusCode);
    return { status: response.statusCode, body: answer, message };
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }
}

/** Creates or replaces definitions and waits until every one is served. */
export async function installDefinitions(server: ApiServer, definitions: readonly object[]): Promise<void> {
  const base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const definition of definitions as readonly { metadata: { name: string } }[]) {
    const { name } = definition.metadata;
    const current = await server.send("GET", `${base}/${name}`);
    const metadata = { name, resourceVersion: versionOf(current.body) };
    const answer =
      current.status === 404
        ? await server.send("POST", base, { ...definition, metadata: { name } })
        : await server.send("PUT", `${base}/${name}`, { ...definition, metadata });
    if (answer.status >= 300) throw new Error(`The API server refused the definition ${name}: ${answer.message}`);
  }
  for (const definition of definitions as readonly { metadata: { name: string } }[]) {
    await waitUntilEstablished(server, `${base}/${definition.metadata.name}`);
  }
}

async function waitUntilEstablished(server: ApiServer, path: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const { body } = await server.send("GET", path);
    const conditions = conditionsOf(body);
    if (conditions.some(({ type, status }) => type === "Established" && status === "True")) return;
    if (Date.now() > deadline) throw new Error(`${path} was not served within 30 s: ${JSON.stringify(conditions)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Conditions in an object's status. */
export function conditionsOf(
  body: Record<string, unknown>,
): readonly { type: string; status: string; message?: string }[] {
  const status = body["status"] as { conditions?: { type: string; status: string; message?: string }[] } | undefined;
  return status?.conditions ?? [];
}

function versionOf(body: Record<string, unknown>): string | undefined {
  return (body["metadata"] as { resourceVersion?: string } | undefined)?.resourceVersion;
}
