import { request } from "node:https";
import type { ServiceAccount } from "../../../src/api/generated/kubernetes.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { World } from "../operator/world.ts";

/** Asks for `/metrics` of this machine by TLS, as one who does not know its certificate. */
export function scrape(port: number, token?: string, path = "/metrics"): Promise<{ code: number; body: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const options = { host: "127.0.0.1", port, path, headers, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const sent = request(options, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.once("end", () => resolve({ code: answer.statusCode ?? 0, body }));
    });
    sent.once("error", reject).end();
  });
}

/** A token of a service account that exists. */
export async function tokenOf(world: World, namespace: string, name: string): Promise<string> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { name, namespace },
    spec: { expirationSeconds: 3_600 },
  };
  const options = { subresource: "token" };
  const answer = await world.api.create(resources.serviceAccounts, body as unknown as ServiceAccount, options);
  return (answer as unknown as { status: { token: string } }).status.token;
}
