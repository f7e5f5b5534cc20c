import { readFileSync } from "node:fs";
import { request } from "node:https";
import { collectionPath, objectPath } from "../../../src/kube/resource-path.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import type { World } from "./world.ts";

/** What the API server says to one write, as a person with kubectl reads it. */
export interface Verdict {
  status: number;
  /** Text of a refusal, empty for an accepted object. */
  message: string;
  warnings: string[];
}

/**
 * Sends an object as `kubectl apply` does: unknown and doubled fields are refused. Nothing is kept unless `keep` is set.
 * @default method POST
 */
export async function submit<T extends KubeObject>(
  world: World,
  type: ResourceType<T>,
  object: KubeObject & Record<string, unknown>,
  options: { method?: "POST" | "PUT"; keep?: boolean } = {},
): Promise<Verdict> {
  const { namespace = "default", name = "" } = object.metadata;
  const method = options.method ?? "POST";
  const path = method === "PUT" ? objectPath(type, { namespace, name }) : collectionPath(type, namespace);
  const query = options.keep ? "fieldValidation=Strict" : "fieldValidation=Strict&dryRun=All";
  return send(world, method, `${path}?${query}`, JSON.stringify(object));
}

/** Sends text as it is, for bodies that no object in memory can be. */
export function send(world: World, method: string, path: string, body: string): Promise<Verdict> {
  const { url, caFile, token } = world.controlPlane;
  return new Promise((resolve, reject) => {
    const call = request(
      `${url}${path}`,
      {
        method,
        ca: readFileSync(caFile),
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        agent: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          const message = status < 300 ? "" : ((JSON.parse(text) as { message?: string }).message ?? text);
          resolve({ status, message, warnings: parseWarnings(response.headersDistinct["warning"] ?? []) });
        });
      },
    );
    call.on("error", reject);
    call.end(body);
  });
}

/** The texts of `299 - "text"` headers, several of which may share a line. */
function parseWarnings(lines: readonly string[]): string[] {
  return lines.flatMap((line) =>
    [...line.matchAll(/299 \S+ ("(?:[^"\\]|\\.)*")/g)].map((it) => JSON.parse(it[1] ?? '""') as string),
  );
}
