import { clusterNamespace } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Secret } from "../api/generated/kubernetes.ts";
import { buildAuthoritySecret, buildLeafSecret, type KeyPair, renewalPatch } from "../build/certificate-secrets.ts";
import type { CertificateAction } from "../build/certificates.ts";
import type { BuildContext } from "../build/context.ts";
import { resources } from "../kube/resources.ts";
import { secretText } from "../pki/inspect.ts";
import { createAuthority, createLeaf, renewAuthority, renewLeaf } from "../pki/issue.ts";
import type { Clock } from "../ports/clock.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";
import type { OperatorStores } from "./stores.ts";

export interface CertificateExecution {
  api: KubeApi;
  stores: Pick<OperatorStores, "secrets">;
  clock: Clock;
  context: BuildContext;
  cluster: Cluster;
  signal: AbortSignal;
}

/** Makes or renews one certificate and writes its Secret; a key that exists is never replaced. */
export async function executeCertificate(run: CertificateExecution, action: CertificateAction): Promise<void> {
  const validity = { now: run.clock.now(), durationDays: run.context.certificateDurationDays };
  switch (action.kind) {
    case "createAuthority": {
      const pair = await createAuthority(action, validity);
      return create(run, buildAuthoritySecret(run.cluster, action.secret, pair, run.context));
    }
    case "renewAuthority": {
      const secret = read(run, action.secret);
      const certificate = await renewAuthority(pairOf(secret, "ca"), validity);
      return patch(run, secret, renewalPatch("authority", certificate));
    }
    case "createLeaf": {
      const pair = await createLeaf(pairOf(read(run, action.authority), "ca"), action.leaf, validity);
      return create(run, buildLeafSecret(run.cluster, action.secret, pair, run.context));
    }
    case "renewLeaf": {
      const secret = read(run, action.secret);
      const authority = pairOf(read(run, action.authority), "ca");
      const certificate = await renewLeaf(authority, pairOf(secret, "tls").privateKey, action.leaf, validity);
      return patch(run, secret, renewalPatch("leaf", certificate));
    }
    default:
      action satisfies never;
  }
}

function read(run: CertificateExecution, name: string): Secret {
  const namespace = clusterNamespace(run.cluster);
  const secret = run.stores.secrets.get({ namespace, name });
  if (!secret) throw new Error(`secret ${namespace}/${name} was there when its certificate was planned and is gone`);
  return secret;
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

async function create(run: CertificateExecution, secret: Secret): Promise<void> {
  const key = { namespace: secret.metadata.namespace ?? "", name: secret.metadata.name ?? "" };
  try {
    run.stores.secrets.observeWrite(await run.api.create(resources.secrets, secret, { signal: run.signal }));
  } catch (error) {
    if (!isKubeError(error, "alreadyExists")) throw error;
    // Another process was faster; its certificate is as good as ours and the next pass judges it.
    run.stores.secrets.observeWrite(await run.api.get(resources.secrets, key, { signal: run.signal }));
  }
}

async function patch(
  run: CertificateExecution,
  secret: Secret,
  change: { data: Record<string, string> },
): Promise<void> {
  const { namespace, name, resourceVersion } = secret.metadata;
  const body = { ...change, metadata: { resourceVersion } };
  const key = { namespace: namespace ?? "", name: name ?? "" };
  run.stores.secrets.observeWrite(
    await run.api.patch(resources.secrets, key, { type: "merge", body }, { signal: run.signal }),
  );
}
