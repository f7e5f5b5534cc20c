// The plugin's own TLS: it makes the two certificates that its Service names, renews them, and writes them to the files that
// its server reads. Who prefers cert-manager mounts the Secrets of that instead.
import { dirname } from "node:path";
import type { Secret, Service } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";
import { pluginService } from "../../api/plugin-service.ts";
import type { KeyPair } from "../../build/certificate-secrets.ts";
import type { LeafRequest } from "../../build/certificates.ts";
import { resources } from "../../kube/resources.ts";
import { inspectLeaf, secretText } from "../../pki/inspect.ts";
import { createSelfSigned, renewSelfSigned } from "../../pki/self-signed.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import type { PluginTls } from "../framework/create-plugin-server.ts";
import { certificateDays, managedBy, planCertificate } from "./plan-certificate.ts";

export interface CertificateDeps {
  api: KubeApi;
  files: Files;
  clock: Clock;
  logger: Logger;
  namespace: string;
  /** The plugin's Service, whose annotations name the Secrets. */
  service: string;
  tls: Pick<PluginTls, "certificateFile" | "keyFile" | "clientRootsFile">;
}

const checkMs = 300_000;

/** Makes what is missing, renews what expires, and brings the files up to date. */
export async function ensureCertificates(deps: CertificateDeps, signal?: AbortSignal): Promise<void> {
  const { tls, files } = deps;
  const service = await deps.api.get(
    resources.services,
    { namespace: deps.namespace, name: deps.service },
    signal ? { signal } : {},
  );
  const server = await ensureSecret(
    deps,
    secretName(service, pluginService.serverSecret),
    serverRequest(service),
    signal,
  );
  const clientName = secretName(service, pluginService.clientSecret);
  const client = await ensureSecret(
    deps,
    clientName,
    { commonName: `${deps.service}-client`, usage: "client", dnsNames: [] },
    signal,
  );
  for (const path of new Set(Object.values(tls).map(dirname))) await files.makeDirectory(path);
  // The server looks at all three together, and keeps the old ones while they do not fit.
  await files.writeAtomic(tls.keyFile, server.privateKey, 0o600);
  await files.writeAtomic(tls.certificateFile, server.certificate, 0o644);
  await files.writeAtomic(tls.clientRootsFile, client.certificate, 0o644);
}

/** Looks after the certificates for as long as the program runs. */
export function createCertificateUpkeep(deps: CertificateDeps): Runnable {
  return {
    name: "plugin certificates",
    async run(stop) {
      while (!stop.aborted) {
        await deps.clock.sleep(checkMs, stop).catch(() => undefined);
        if (stop.aborted) return;
        await ensureCertificates(deps, stop).catch((error: unknown) => {
          if (!stop.aborted) deps.logger.error("The plugin's certificates could not be maintained", { error });
        });
      }
    },
  };
}

function serverRequest(service: Service): LeafRequest {
  const name = service.metadata.name ?? "";
  const announced = service.metadata.annotations?.[pluginService.serverName];
  const inCluster = [name, `${name}.${service.metadata.namespace}.svc`];
  return {
    commonName: name,
    usage: "server",
    dnsNames: [...new Set([...(announced ? [announced] : []), ...inCluster])],
  };
}

function secretName(service: Service, annotation: string): string {
  const name = service.metadata.annotations?.[annotation];
  if (name) return name;
  const { namespace, name: serviceName } = service.metadata;
  throw new Error(`Service ${namespace}/${serviceName} has no annotation ${annotation}: name a Secret in it`);
}

async function ensureSecret(
  deps: CertificateDeps,
  name: string,
  leaf: LeafRequest,
  signal: AbortSignal | undefined,
): Promise<KeyPair> {
  // A second replica may be at the same work: the loser takes what the winner wrote.
  for (let attempt = 1; ; attempt++) {
    const live = await find(deps, name, signal);
    const ours = live?.metadata.labels?.[labels.appManagedBy] === managedBy;
    const now = deps.clock.now();
    const step = planCertificate(inspectLeaf(live, undefined, leaf.usage, now), { name, ours }, now, leaf.dnsNames);
    if (step.kind === "refuse") throw new Error(step.reason);
    if (live && step.kind === "keep") return pairOf(live);
    const validity = { now, durationDays: certificateDays };
    const kept = live && step.kind === "renew" ? pairOf(live).privateKey : undefined;
    const pair =
      kept === undefined
        ? await createSelfSigned(leaf, validity)
        : { privateKey: kept, certificate: renewSelfSigned(kept, leaf, validity) };
    try {
      await write(deps, name, live, pair, signal);
      deps.logger.info("Certificate was written", { secret: name, reason: "reason" in step ? step.reason : "" });
      return pair;
    } catch (error) {
      if (!isKubeError(error, "conflict", "alreadyExists", "notFound") || attempt >= 5) throw error;
    }
  }
}

async function write(
  { api, namespace }: CertificateDeps,
  name: string,
  live: Secret | undefined,
  pair: KeyPair,
  signal: AbortSignal | undefined,
): Promise<void> {
  const encode = (text: string) => Buffer.from(text, "utf8").toString("base64");
  const data = {
    "tls.crt": encode(pair.certificate),
    "tls.key": encode(pair.privateKey),
    "ca.crt": encode(pair.certificate),
  };
  const options = signal ? { signal } : {};
  if (live) {
    await api.update(resources.secrets, { ...live, data: { ...live.data, ...data } }, options);
    return;
  }
  const metadata = { name, namespace, labels: { [labels.appManagedBy]: managedBy } };
  await api.create(
    resources.secrets,
    { apiVersion: "v1", kind: "Secret", metadata, type: "kubernetes.io/tls", data },
    options,
  );
}

async function find(
  { api, namespace }: CertificateDeps,
  name: string,
  signal: AbortSignal | undefined,
): Promise<Secret | undefined> {
  try {
    return await api.get(resources.secrets, { namespace, name }, signal ? { signal } : {});
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}

function pairOf(secret: Secret): KeyPair {
  return { certificate: secretText(secret, "tls.crt") ?? "", privateKey: secretText(secret, "tls.key") ?? "" };
}
