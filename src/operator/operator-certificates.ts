import type { OwnerReference, Secret } from "../api/generated/kubernetes.ts";
import { buildOperatorSecret, type KeyPair, renewalPatch } from "../build/certificate-secrets.ts";
import { checkExpiry, type LeafRequest } from "../build/certificates.ts";
import { resources } from "../kube/resources.ts";
import { inspectAuthority, inspectLeaf, secretText } from "../pki/inspect.ts";
import { createAuthority, createLeaf, renewAuthority, renewLeaf } from "../pki/issue.ts";
import type { Clock } from "../ports/clock.ts";
import { isKubeError, type KubeApi, type KubeObject, type ResourceType } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { OperatorSettings } from "./settings.ts";

const authorityName = "cnpg-ca-secret";
const certificateName = "cnpg-webhook-cert";
const serviceName = "cnpg-webhook-service";

export interface OperatorCertificatesOptions {
  api: KubeApi;
  clock: Clock;
  logger: Logger;
  settings: OperatorSettings;
}

/**
 * Ensures the authority and the certificate of the operator's webhooks in its own namespace, renewing what expires, and
 * tells both webhook configurations (reference: cluster controller §4.4). Returns what the server is to present.
 */
export async function ensureOperatorCertificates(
  options: OperatorCertificatesOptions,
  signal: AbortSignal,
): Promise<KeyPair> {
  const namespace = options.settings.context.operatorNamespace;
  const owner = await findOwner(options, namespace, signal);
  const authority = await ensureAuthority(options, namespace, owner, signal);
  const leaf = await ensureLeaf(options, namespace, authority, owner, signal);
  const pair = pairOf(leaf, "tls");
  if (options.settings.manageWebhookConfigurations) await injectAuthority(options, pair.certificate, signal);
  return pair;
}

/** A certificate for a server that runs outside of a cluster: kept in memory only. */
export async function createTransientCertificate(options: OperatorCertificatesOptions): Promise<KeyPair> {
  const validity = validityOf(options);
  const authority = await createAuthority({ commonName: authorityName, organizationalUnit: "" }, validity);
  return createLeaf(authority, { commonName: "localhost", usage: "server", dnsNames: ["localhost"] }, validity);
}

function validityOf({ clock, settings }: OperatorCertificatesOptions) {
  return { now: clock.now(), durationDays: settings.context.certificateDurationDays };
}

/** The operator's own Deployment, so that its Secrets go with it; without a single one they belong to nobody. */
async function findOwner(
  { api, logger }: OperatorCertificatesOptions,
  namespace: string,
  signal: AbortSignal,
): Promise<OwnerReference | undefined> {
  const labelSelector = "app.kubernetes.io/name=cloudnative-pg";
  const found = await api.list(resources.deployments, { namespace, labelSelector, signal });
  const [deployment] = found;
  if (!deployment || found.length > 1) {
    logger.warning("The operator's Deployment cannot be told, its certificates will have no owner", {
      namespace,
      deployments: found.length,
    });
    return undefined;
  }
  const { name = "", uid = "" } = deployment.metadata;
  return { apiVersion: "apps/v1", kind: "Deployment", name, uid, controller: true };
}

async function ensureAuthority(
  options: OperatorCertificatesOptions,
  namespace: string,
  owner: OwnerReference | undefined,
  signal: AbortSignal,
): Promise<Secret> {
  const live = await find(options, namespace, authorityName, signal);
  const state = inspectAuthority(live);
  if (live && state.kind === "present") {
    if (checkExpiry(state, options.clock.now(), options.settings.context.expiringThresholdDays) === null) return live;
    const certificate = await renewAuthority(pairOf(live, "ca"), validityOf(options));
    return patch(options, live, renewalPatch("authority", certificate), signal);
  }
  if (live) throw new Error(`secret ${namespace}/${authorityName} cannot be used: delete it and it will be made anew`);
  const subject = { commonName: authorityName, organizationalUnit: namespace };
  const pair = await createAuthority(subject, validityOf(options));
  return create(options, buildOperatorSecret("authority", authorityName, namespace, pair, owner), signal);
}

async function ensureLeaf(
  options: OperatorCertificatesOptions,
  namespace: string,
  authority: Secret,
  owner: OwnerReference | undefined,
  signal: AbortSignal,
): Promise<Secret> {
  const host = `${serviceName}.${namespace}.svc`;
  const leaf: LeafRequest = { commonName: host, usage: "server", dnsNames: [host] };
  const live = await find(options, namespace, certificateName, signal);
  const state = inspectLeaf(live, authority, "server", options.clock.now());
  if (live && state.kind === "present") {
    const { expiringThresholdDays } = options.settings.context;
    const isFine = checkExpiry(state, options.clock.now(), expiringThresholdDays) === null && !state.problem;
    if (isFine && state.dnsNames.includes(host)) return live;
    const { privateKey } = pairOf(live, "tls");
    const certificate = await renewLeaf(pairOf(authority, "ca"), privateKey, leaf, validityOf(options));
    return patch(options, live, renewalPatch("leaf", certificate), signal);
  }
  if (live)
    throw new Error(`secret ${namespace}/${certificateName} cannot be used: delete it and it will be made anew`);
  const pair = await createLeaf(pairOf(authority, "ca"), leaf, validityOf(options));
  return create(options, buildOperatorSecret("leaf", certificateName, namespace, pair, owner), signal);
}

/** The API server trusts the webhooks by this bundle; a configuration that is not installed is none to tell. */
async function injectAuthority(
  { api, logger, settings }: OperatorCertificatesOptions,
  certificate: string,
  signal: AbortSignal,
): Promise<void> {
  const suffix = settings.webhookNamespaceSuffix ? `-${settings.context.operatorNamespace}` : "";
  const caBundle = Buffer.from(certificate, "utf8").toString("base64");
  const trust = { api, logger, caBundle };
  await trustIn(trust, resources.mutatingWebhookConfigurations, `cnpg-mutating-webhook-configuration${suffix}`, signal);
  await trustIn(
    trust,
    resources.validatingWebhookConfigurations,
    `cnpg-validating-webhook-configuration${suffix}`,
    signal,
  );
}

interface WebhookConfiguration extends KubeObject {
  webhooks?: { name: string; clientConfig: { caBundle?: string } }[];
}

async function trustIn<T extends WebhookConfiguration>(
  { api, logger, caBundle }: { api: KubeApi; logger: Logger; caBundle: string },
  type: ResourceType<T>,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const live = await api.get(type, { name }, { signal });
    const webhooks = live.webhooks ?? [];
    if (webhooks.every((it) => it.clientConfig.caBundle === caBundle)) return;
    const body = {
      metadata: { resourceVersion: live.metadata.resourceVersion },
      webhooks: webhooks.map((it) => ({ ...it, clientConfig: { ...it.clientConfig, caBundle } })),
    };
    await api.patch(type, { name }, { type: "merge", body }, { signal });
  } catch (error) {
    if (!isKubeError(error, "notFound")) throw error;
    logger.debug("Webhook configuration is not installed", { name });
  }
}

async function find(
  { api }: OperatorCertificatesOptions,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  try {
    return await api.get(resources.secrets, { namespace, name }, { signal });
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}

async function create({ api }: OperatorCertificatesOptions, secret: Secret, signal: AbortSignal): Promise<Secret> {
  try {
    return await api.create(resources.secrets, secret, { signal });
  } catch (error) {
    if (!isKubeError(error, "alreadyExists")) throw error;
    const { namespace = "", name = "" } = secret.metadata;
    return api.get(resources.secrets, { namespace, name }, { signal });
  }
}

function patch(
  { api }: OperatorCertificatesOptions,
  secret: Secret,
  change: { data: Record<string, string> },
  signal: AbortSignal,
): Promise<Secret> {
  const { namespace = "", name = "", resourceVersion } = secret.metadata;
  const body = { ...change, metadata: { resourceVersion } };
  return api.patch(resources.secrets, { namespace, name }, { type: "merge", body }, { signal });
}

function pairOf(secret: Secret, prefix: "ca" | "tls"): KeyPair {
  const certificate = secretText(secret, `${prefix}.crt`);
  const privateKey = secretText(secret, `${prefix}.key`);
  if (!certificate || !privateKey) {
    throw new Error(
      `secret ${secret.metadata.namespace}/${secret.metadata.name} has no ${prefix}.crt or no ${prefix}.key`,
    );
  }
  return { certificate, privateKey };
}
