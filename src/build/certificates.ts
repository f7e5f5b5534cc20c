import { clusterName, clusterNamespace, secretNames } from "../api/cluster-facts.ts";
import { roles } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { formatGoTime } from "./go-time.ts";
import { isServiceEnabled } from "./services.ts";

/** What a certificate Secret was found to hold; of a tls Secret the first certificate of the chain counts. */
export type ObservedCertificate =
  | { kind: "absent" }
  /** The Secret is there, what it should hold is not or cannot be read. */
  | { kind: "unreadable"; reason: string }
  | {
      kind: "present";
      /** Milliseconds since the epoch. */
      notBefore: number;
      notAfter: number;
      dnsNames: readonly string[];
      /** Whether the private key (`ca.key`, `tls.key`) is there too. */
      hasKey: boolean;
      /** Why the chain or the key does not fit its authority; absent when it fits or was not checked. */
      problem?: string;
    };

/** What distinguishes a leaf certificate. */
export interface LeafRequest {
  commonName: string;
  usage: "server" | "client";
  dnsNames: readonly string[];
}

/** One step towards valid certificates. Renewing keeps the private key. */
export type CertificateAction =
  | { kind: "createAuthority"; secret: string; commonName: string; organizationalUnit: string; reason: string }
  | { kind: "renewAuthority"; secret: string; reason: string }
  | { kind: "createLeaf"; secret: string; authority: string; leaf: LeafRequest; reason: string }
  | { kind: "renewLeaf"; secret: string; authority: string; leaf: LeafRequest; reason: string };

/** A Warning event about a Secret of the user's. */
export interface CertificateWarning {
  reason: "SecretNotFound" | "InvalidCASecret" | "SecretIsExpiring";
  message: string;
}

/** What to do about a cluster's certificates, in order. With failures the cluster cannot go on until the user acts. */
export interface CertificatePlan {
  actions: CertificateAction[];
  warnings: CertificateWarning[];
  failures: string[];
  /** Value of `status.certificates`. */
  status: NonNullable<NonNullable<Cluster["status"]>["certificates"]>;
}

/** Decides what must be created or renewed. `now` is in milliseconds; `pooler` says whether a Pooler needs a certificate. */
export function planCertificates(
  cluster: Cluster,
  observed: ReadonlyMap<string, ObservedCertificate>,
  now: number,
  context: BuildContext,
  options: { pooler: boolean } = { pooler: false },
): CertificatePlan {
  const names = secretNames(cluster);
  const own = childNames(clusterName(cluster));
  const provided = cluster.spec.certificates;
  const dnsNames = serverDnsNames(cluster, context);
  const plan: CertificatePlan = {
    actions: [],
    warnings: [],
    failures: [],
    status: {
      serverCASecret: names.serverCa,
      serverTLSSecret: names.serverTls,
      clientCASecret: names.clientCa,
      replicationTLSSecret: names.replicationTls,
      serverAltDNSNames: dnsNames,
      expirations: {},
    },
  };
  const judge = new Judge(observed, now, context, plan, `${clusterNamespace(cluster)}/${clusterName(cluster)}`);
  judge.authority("server", names.serverCa, provided?.serverCASecret, !provided?.serverTLSSecret, cluster);
  if (provided?.serverTLSSecret) judge.provided(provided.serverTLSSecret);
  else judge.leaf(own.server, names.serverCa, { commonName: own.rw, usage: "server", dnsNames });
  if (names.clientCa !== names.serverCa)
    judge.authority("client", names.clientCa, provided?.clientCASecret, !provided?.replicationTLSSecret, cluster);
  else if (provided?.clientCASecret && !provided.replicationTLSSecret) judge.signingKey(names.clientCa);
  if (provided?.replicationTLSSecret) judge.provided(provided.replicationTLSSecret);
  else judge.leaf(own.replication, names.clientCa, { commonName: roles.replication, usage: "client", dnsNames: [] });
  if (options.pooler)
    judge.leaf(own.pooler, names.clientCa, { commonName: roles.pooler, usage: "client", dnsNames: [] });
  judge.noteExpirations([names.serverCa, names.serverTls, names.clientCa, names.replicationTls]);
  return plan;
}

/** DNS names of the server certificate: four forms of each enabled Service, then the user's own. */
export function serverDnsNames(cluster: Cluster, context: BuildContext): string[] {
  const names = childNames(clusterName(cluster));
  const defaults = (["rw", "r", "ro"] as const).filter((kind) => isServiceEnabled(cluster, kind, context));
  const additional = cluster.spec.managed?.services?.additional ?? [];
  const services = [
    ...defaults.map((kind) => names[kind]),
    ...additional.map(({ serviceTemplate }) => serviceTemplate.metadata?.name ?? ""),
  ].filter((name) => name !== "");
  const namespace = clusterNamespace(cluster);
  return [
    ...services.flatMap((service) => [
      service,
      `${service}.${namespace}`,
      `${service}.${namespace}.svc`,
      `${service}.${namespace}.svc.${context.clusterDomain}`,
    ]),
    ...(cluster.spec.certificates?.serverAltDNSNames ?? []),
  ];
}

/** Why a certificate must be renewed, or null. `thresholdDays` below one falls back to seven. */
export function checkExpiry(
  certificate: { notBefore: number; notAfter: number },
  now: number,
  thresholdDays: number,
): string | null {
  const days = thresholdDays > 0 ? thresholdDays : 7;
  if (now < certificate.notBefore) return `is not valid before ${formatGoTime(certificate.notBefore)}`;
  if (now + days * 86_400_000 > certificate.notAfter) return `expires at ${formatGoTime(certificate.notAfter)}`;
  return null;
}

class Judge {
  private readonly observed: ReadonlyMap<string, ObservedCertificate>;
  private readonly now: number;
  private readonly context: BuildContext;
  private readonly plan: CertificatePlan;
  private readonly cluster: string;

  constructor(
    observed: ReadonlyMap<string, ObservedCertificate>,
    now: number,
    context: BuildContext,
    plan: CertificatePlan,
    cluster: string,
  ) {
    this.observed = observed;
    this.now = now;
    this.context = context;
    this.plan = plan;
    this.cluster = cluster;
  }

  authority(use: "server" | "client", secret: string, provided: string | undefined, signs: boolean, cluster: Cluster) {
    if (provided) return this.providedAuthority(use, provided, signs);
    const found = this.look(secret);
    if (found.kind === "absent") {
      const [commonName, organizationalUnit] = [clusterName(cluster), clusterNamespace(cluster)];
      const reason = `secret ${secret} does not exist`;
      this.plan.actions.push({ kind: "createAuthority", secret, commonName, organizationalUnit, reason });
      return;
    }
    if (found.kind === "unreadable") return this.unreadable(secret, found.reason);
    const expiry = this.expiry(found);
    if (expiry)
      this.plan.actions.push({ kind: "renewAuthority", secret, reason: `certificate of ${secret} ${expiry}` });
  }

  leaf(secret: string, authority: string, leaf: LeafRequest) {
    const found = this.look(secret);
    const target = { secret, authority, leaf };
    if (found.kind === "absent") {
      if (this.canSign(authority))
        this.plan.actions.push({ kind: "createLeaf", ...target, reason: `secret ${secret} does not exist` });
      return;
    }
    if (found.kind === "unreadable") return this.unreadable(secret, found.reason);
    const cause = this.expiry(found) ?? found.problem ?? checkNames(found.dnsNames, leaf);
    if (cause && this.canSign(authority))
      this.plan.actions.push({ kind: "renewLeaf", ...target, reason: `certificate of ${secret} ${cause}` });
  }

  /** Whether an authority signs, or will once the plan so far is carried out; that it lacks its key is told. */
  private canSign(authority: string): boolean {
    if (this.plan.actions.some((it) => it.kind === "createAuthority" && it.secret === authority)) return true;
    const found = this.look(authority);
    this.signingKey(authority);
    return found.kind === "present" && found.hasKey;
  }

  provided(secret: string) {
    const found = this.look(secret);
    if (found.kind === "absent") return this.missing(secret);
    if (found.kind === "unreadable") return this.unreadable(secret, found.reason);
    if (found.problem) this.unreadable(secret, found.problem);
  }

  signingKey(secret: string) {
    const found = this.look(secret);
    if (found.kind === "present" && !found.hasKey)
      this.fail(`secret ${secret} has no ca.key: add it, or provide the certificates that it would sign`);
  }

  noteExpirations(secrets: readonly string[]) {
    const expirations: Record<string, string> = {};
    for (const secret of secrets) {
      const found = this.look(secret);
      if (found.kind === "present") expirations[secret] = formatGoTime(found.notAfter);
    }
    this.plan.status.expirations = expirations;
  }

  private providedAuthority(use: "server" | "client", secret: string, signs: boolean) {
    const found = this.look(secret);
    if (found.kind === "absent") return this.missing(secret);
    if (found.kind === "unreadable") {
      this.plan.warnings.push({
        reason: "InvalidCASecret",
        message: `Parsing ${use} secret ${secret}: ${found.reason}`,
      });
      return this.unreadable(secret, found.reason);
    }
    if (this.expiry(found))
      this.plan.warnings.push({ reason: "SecretIsExpiring", message: `Checking expiring date of secret ${secret}` });
    if (signs) this.signingKey(secret);
  }

  private missing(secret: string) {
    this.plan.warnings.push({ reason: "SecretNotFound", message: `Getting secret ${secret}` });
    this.fail(`secret ${secret} does not exist: create it, or remove its name from spec.certificates`);
  }

  private unreadable(secret: string, reason: string) {
    this.fail(`secret ${secret} cannot be used: ${reason}`);
  }

  private fail(message: string) {
    const failure = `cluster ${this.cluster}: ${message}`;
    if (!this.plan.failures.includes(failure)) this.plan.failures.push(failure);
  }

  private look(secret: string): ObservedCertificate {
    return this.observed.get(secret) ?? { kind: "absent" };
  }

  private expiry(found: { notBefore: number; notAfter: number }): string | null {
    return checkExpiry(found, this.now, this.context.expiringThresholdDays);
  }
}

function checkNames(found: readonly string[], leaf: LeafRequest): string | null {
  if (leaf.usage === "client") return null;
  const same = [...found].sort().join("\n") === [...leaf.dnsNames].sort().join("\n");
  return same ? null : "does not carry the wanted DNS names";
}
