// The plugin's own TLS: it makes the two certificates that its Service names, renews them, and writes them to the files that
// its server reads. Each Secret's tls.crt also holds the authority, so that a peer that knows the old certificate accepts the
// renewed one. Who prefers cert-manager mounts the Secrets of that instead.
import { dirname } from "node:path";
import type { Secret, Service } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";
import { pluginService } from "../../api/plugin-service.ts";
import type { KeyPair } from "../../build/certificate-secrets.ts";
import type { LeafRequest, ObservedCertificate } from "../../build/certificates.ts";
import { resources } from "../../kube/resources.ts";
import { inspectAuthority, inspectLeaf, secretText } from "../../pki/inspect.ts";
import { createAuthority, createLeaf, renewAuthority, renewLeaf } from "../../pki/issue.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import type { PluginTls } from "../framework/create-plugin-server.ts";
import { authorityDays, authoritySecret, certificateDays, managedBy, planCertificate } from "./plan-certificate.ts";

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
  const authority = await ensureAuthority(deps, signal);
  const serverName = secretName(service, pluginService.serverSecret);
  const clientName = secretName(service, pluginService.clientSecret);
  const clientRequest = { commonName: `${deps.service}-client`, usage: "client" as const, dnsNames: [] };
  const server = await ensureLeaf(deps, serverName, serverRequest(service), authority, signal);
  const client = await ensureLeaf(deps, clientName, clientRequest, authority, signal);
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

async function ensureAuthority(deps: CertificateDeps, signal: AbortSignal | undefined): Promise<Secret> {
  const name = authoritySecret(deps.service);
  return ensureSecret(deps, name, signal, {
    dnsNames: [],
    inspect: (live) => inspectAuthority(live),
    async issue(live, now) {
      const validity = { now, durationDays: authorityDays };
      const kept = live && pairOf(live, "ca");
      const pair = kept
        ? { ...kept, certificate: renewAuthority(kept, validity) }
        : await createAuthority({ commonName: name, organizationalUnit: deps.namespace }, validity);
      return { type: "Opaque", data: { "ca.crt": pair.certificate, "ca.key": pair.privateKey } };
    },
  });
}

async function ensureLeaf(
  deps: CertificateDeps,
  name: string,
  leaf: LeafRequest,
  authority: Secret,
  signal: AbortSignal | undefined,
): Promise<KeyPair> {
  const signer = pairOf(authority, "ca");
  const secret = await ensureSecret(deps, name, signal, {
    dnsNames: leaf.dnsNames,
    inspect: (live, now) => inspectLeaf(live, authority, leaf.usage, now),
    async issue(live, now) {
      const validity = { now, durationDays: certificateDays };
      const key = live && pairOf(live, "tls").privateKey;
      const pair = key
        ? { privateKey: key, certificate: renewLeaf(signer, key, leaf, validity) }
        : await createLeaf(signer, leaf, validity);
      const bundle = `${pair.certificate}${signer.certificate}`;
      const data = { "tls.crt": bundle, "tls.key": pair.privateKey, "ca.crt": signer.certificate };
      return { type: "kubernetes.io/tls", data };
    },
  });
  return pairOf(secret, "tls");
}

/** What one Secret is to hold. */
interface SecretContent {
  dnsNames: readonly string[];
  inspect(live: Secret | undefined, now: number): ObservedCertificate;
  /** New content; of a Secret that is given the key is kept. */
  issue(live: Secret | undefined, now: number): Promise<{ type: string; data: Record<string, string> }>;
}

async function ensureSecret(
  deps: CertificateDeps,
  name: string,
  signal: AbortSignal | undefined,
  content: SecretContent,
): Promise<Secret> {
  // A second replica may be at the same work: the loser takes what the winner wrote.
  for (let attempt = 1; ; attempt++) {
    const live = await find(deps, name, signal);
    const ours = live?.metadata.labels?.[labels.appManagedBy] === managedBy;
    const now = deps.clock.now();
    const step = planCertificate(content.inspect(live, now), { name, ours }, now, content.dnsNames);
    if (step.kind === "refuse") throw new Error(step.reason);
    if (live && step.kind === "keep") return live;
    const issued = await content.issue(step.kind === "renew" ? live : undefined, now);
    try {
      const written = await write(deps, name, live, issued, signal);
      deps.logger.info("Certificate was written", { secret: name, reason: "reason" in step ? step.reason : "" });
      return written;
    } catch (error) {
      if (!isKubeError(error, "conflict", "alreadyExists", "notFound") || attempt >= 5) throw error;
    }
  }
}

async function write(
  { api, namespace }: CertificateDeps,
  name: string,
  live: Secret | undefined,
  issued: { type: string; data: Record<string, string> },
  signal: AbortSignal | undefined,
): Promise<Secret> {
  const encode = (text: string) => Buffer.from(text, "utf8").toString("base64");
  const data = Object.fromEntries(Object.entries(issued.data).map(([key, text]) => [key, encode(text)]));
  const options = signal ? { signal } : {};
  if (live) return api.update(resources.secrets, { ...live, data: { ...live.data, ...data } }, options);
  const metadata = { name, namespace, labels: { [labels.appManagedBy]: managedBy } };
  const secret: Secret = { apiVersion: "v1", kind: "Secret", metadata, type: issued.type, data };
  return api.create(resources.secrets, secret, options);
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

function pairOf(secret: Secret, prefix: "ca" | "tls"): KeyPair {
  const [certificate = "", privateKey = ""] = [`${prefix}.crt`, `${prefix}.key`].map((key) => secretText(secret, key));
  return { certificate, privateKey };
}
