import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { ServiceAccount } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { World } from "./world.ts";

/** A client, and a kubeconfig, with exactly the rights of a service account. */
export interface AccountAccess {
  api: KubeClient;
  kubeconfig: string;
  close(): Promise<void>;
}

/** Writes a kubeconfig with a token of a service account that exists. */
export async function writeAccountKubeconfig(
  world: World,
  namespace: string,
  name: string,
): Promise<{ kubeconfig: string; remove(): void }> {
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { name, namespace },
    spec: { expirationSeconds: 3_600 },
  };
  const answer = (await world.api.create(resources.serviceAccounts, request as unknown as ServiceAccount, {
    subresource: "token",
  })) as unknown as { status: { token: string } };
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-account-"));
  const kubeconfig = join(folder, "kubeconfig");
  const cluster = { server: world.controlPlane.url, "certificate-authority": world.controlPlane.caFile };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: answer.status.token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(kubeconfig, stringify(config), { mode: 0o600 });
  return { kubeconfig, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Speaks to the API server as a service account that exists. */
export async function actAs(world: World, namespace: string, name: string): Promise<AccountAccess> {
  const { kubeconfig, remove } = await writeAccountKubeconfig(world, namespace, name);
  const api = createKubeApi(loadKubeconfigConnection(kubeconfig));
  return {
    api,
    kubeconfig,
    async close() {
      await api.close();
      remove();
    },
  };
}
