import { createPrivateKey, X509Certificate } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Secret } from "../../../src/api/generated/kubernetes.ts";
import type { KeyPair } from "../../../src/build/certificate-secrets.ts";
import { type LeafRequest, planCertificates, serverDnsNames } from "../../../src/build/certificates.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { encodeData } from "../../../src/build/credentials.ts";
import { certificateFacts, parseCertificates, publicKeyFingerprint } from "../../../src/pki/certificate.ts";
import { issueCertificate } from "../../../src/pki/certificate-action.ts";
import { inspectAuthority, inspectLeaf } from "../../../src/pki/inspect.ts";
import {
  createAuthority,
  createClientIdentity,
  createLeaf,
  renewAuthority,
  renewLeaf,
} from "../../../src/pki/issue.ts";
import { certificateSecretNames, observeCertificates } from "../../../src/pki/observe.ts";
import {
  authorityKeyExtension,
  basicConstraintsExtension,
  encodeName,
  keyUsageExtension,
  signCertificate,
  subjectKeyExtension,
  subjectOf,
} from "../../../src/pki/x509.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 10, 30, 12, 0, 30, 500);
const validity = { now, durationDays: 90 };
const leaf: LeafRequest = { commonName: "db-rw", usage: "server", dnsNames: ["db-rw", "db-rw.shop"] };
const subject = { commonName: "db", organizationalUnit: "shop" };

const secret = (texts: Record<string, string>): Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "s" },
  data: encodeData(texts),
});
const authoritySecret = (pair: KeyPair) => secret({ "ca.crt": pair.certificate, "ca.key": pair.privateKey });
const leafSecret = (pair: KeyPair) => secret({ "tls.crt": pair.certificate, "tls.key": pair.privateKey });

let authority: KeyPair;
let server: KeyPair;

beforeAll(async () => {
  authority = await createAuthority(subject, validity);
  server = await createLeaf(authority, leaf, validity);
});

describe("an authority", () => {
  test("is valid from five minutes ago, for its days", () => {
    const { notBefore, notAfter } = certificateFacts(new X509Certificate(authority.certificate));
    expect(new Date(notBefore).toISOString()).toBe("2026-11-30T11:55:30.000Z");
    expect(notAfter - notBefore).toBe(90 * day);
  });

  test("falls back to ninety days", async () => {
    const { notBefore, notAfter } = certificateFacts(
      new X509Certificate((await createAuthority(subject, { now, durationDays: 0 })).certificate),
    );
    expect(notAfter - notBefore).toBe(90 * day);
  });

  test("keeps key and name when it is renewed, so that what it signed stays good", () => {
    const before = new X509Certificate(authority.certificate);
    const after = new X509Certificate(renewAuthority(authority, { now: now + 80 * day, durationDays: 90 }));
    expect(publicKeyFingerprint(after)).toBe(publicKeyFingerprint(before));
    expect(after.subject).toBe(before.subject);
    expect(after.serialNumber).not.toBe(before.serialNumber);
    expect(new X509Certificate(server.certificate).verify(after.publicKey)).toBe(true);
  });

  test("is read with its key", () => {
    expect(inspectAuthority(authoritySecret(authority))).toMatchObject({ kind: "present", hasKey: true });
    expect(inspectAuthority(secret({ "ca.crt": authority.certificate }))).toMatchObject({
      kind: "present",
      hasKey: false,
    });
    expect(inspectAuthority(undefined)).toEqual({ kind: "absent" });
  });

  test.each<[string, () => Secret, RegExp]>([
    ["nothing", () => secret({}), /it has no ca\.crt/],
    ["no certificate", () => secret({ "ca.crt": "hello" }), /ca\.crt holds no PEM certificate/],
    [
      "a broken certificate",
      () => secret({ "ca.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" }),
      /ca\.crt holds a malformed certificate/,
    ],
    ["a leaf", () => secret({ "ca.crt": server.certificate }), /not the certificate of an authority/],
    [
      "another key",
      () => secret({ "ca.crt": authority.certificate, "ca.key": server.privateKey }),
      /ca\.key does not belong to its certificate/,
    ],
    [
      "no key",
      () => secret({ "ca.crt": authority.certificate, "ca.key": "hello" }),
      /ca\.key is not a PEM private key/,
    ],
  ])("with %s cannot be read", (_case, build, reason) => {
    expect(inspectAuthority(build())).toEqual({ kind: "unreadable", reason: expect.stringMatching(reason) });
  });
});

describe("a leaf", () => {
  test("is read with its names and found good", () => {
    expect(inspectLeaf(leafSecret(server), authoritySecret(authority), "server", now)).toEqual({
      kind: "present",
      notBefore: Date.UTC(2026, 10, 30, 11, 55, 30),
      notAfter: Date.UTC(2026, 10, 30, 11, 55, 30) + 90 * day,
      dnsNames: leaf.dnsNames,
      hasKey: true,
    });
  });

  test("keeps its key when it is renewed", () => {
    const renewed = renewLeaf(authority, server.privateKey, { ...leaf, dnsNames: ["other"] }, validity);
    const pair = { ...server, certificate: renewed };
    expect(inspectLeaf(leafSecret(pair), authoritySecret(authority), "server", now)).toMatchObject({
      dnsNames: ["other"],
      hasKey: true,
    });
  });

  test.each<[string, () => Promise<[Secret, Secret]>, "server" | "client", number, RegExp]>([
    [
      "for the other purpose",
      async () => [leafSecret(server), authoritySecret(authority)],
      "client",
      now,
      /is not meant for client/,
    ],
    [
      "of another authority of the same name",
      async () => [leafSecret(server), authoritySecret(await createAuthority(subject, validity))],
      "server",
      now,
      /is not signed by its certificate authority/,
    ],
    [
      "that is over",
      async () => [leafSecret(server), authoritySecret(authority)],
      "server",
      now + 91 * day,
      /expired certificate/,
    ],
    [
      "that has not begun",
      async () => [leafSecret(server), authoritySecret(authority)],
      "server",
      now - day,
      /not valid yet/,
    ],
  ])("%s has a problem", async (_case, build, usage, at, problem) => {
    const [given, ca] = await build();
    expect(inspectLeaf(given, ca, usage, at)).toMatchObject({
      kind: "present",
      problem: expect.stringMatching(problem),
    });
  });

  test.each<[string, () => Secret, RegExp]>([
    ["no key", () => secret({ "tls.crt": server.certificate }), /it has no tls\.key/],
    ["no certificate", () => secret({ "tls.key": server.privateKey }), /it has no tls\.crt/],
    [
      "another key",
      () => secret({ "tls.crt": server.certificate, "tls.key": authority.privateKey }),
      /tls\.key does not belong/,
    ],
  ])("with %s cannot be read", (_case, build, reason) => {
    expect(inspectLeaf(build(), undefined, "server", now)).toEqual({
      kind: "unreadable",
      reason: expect.stringMatching(reason),
    });
  });

  test("is not judged by an authority that is not there", () => {
    expect(inspectLeaf(leafSecret(server), undefined, "client", now)).not.toHaveProperty("problem");
  });

  test("below an intermediate is good when its chain holds the intermediate", async () => {
    const root = new X509Certificate(authority.certificate);
    const key = await createAuthority({ commonName: "middle", organizationalUnit: "shop" }, validity);
    const middleKey = createPrivateKey(key.privateKey);
    const middle = signCertificate({
      serial: Buffer.from([7]),
      issuer: subjectOf(root),
      subject: encodeName({ commonName: "middle" }),
      notBefore: new Date(now - day),
      notAfter: new Date(now + day),
      subjectKey: middleKey,
      signingKey: createPrivateKey(authority.privateKey),
      extensions: [
        keyUsageExtension("keyCertSign"),
        basicConstraintsExtension(true),
        subjectKeyExtension(middleKey),
        authorityKeyExtension(root),
      ],
    });
    const below = await createLeaf({ certificate: middle, privateKey: key.privateKey }, leaf, validity);
    const chain = { ...below, certificate: `${below.certificate}${middle}` };
    expect(inspectLeaf(leafSecret(chain), authoritySecret(authority), "server", now)).not.toHaveProperty("problem");
    expect(inspectLeaf(leafSecret(below), authoritySecret(authority), "server", now)).toHaveProperty("problem");
    // A leaf cannot stand in for an authority.
    const forged = await createLeaf(server, leaf, validity);
    const bad = { ...forged, certificate: `${forged.certificate}${server.certificate}` };
    expect(inspectLeaf(leafSecret(bad), authoritySecret(authority), "server", now)).toHaveProperty("problem");
  });
});

test("the operator's identity is fresh each time and named by its public key", async () => {
  const [one, two] = [await createClientIdentity("host", now), await createClientIdentity("host", now)];
  const [a, b] = [one, two].map(({ certificate }) => publicKeyFingerprint(new X509Certificate(certificate)));
  expect(a).toMatch(/^[0-9a-f]{64}$/);
  expect(a).not.toBe(b);
  expect(new X509Certificate(one.certificate).validToDate.getUTCFullYear()).toBe(9999);
});

describe("a cluster's certificates", () => {
  const cluster: Cluster = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "db", namespace: "shop", uid: "u" },
    spec: { instances: 1 },
  };

  test("are made in one pass, and the next pass is content", async () => {
    const secrets = new Map<string, Secret>();
    const planAt = (at: number) =>
      planCertificates(cluster, observeCertificates(cluster, secrets, at), at, defaultBuildContext, { pooler: true });
    const carryOut = async (at: number) => {
      for (const action of planAt(at).actions) {
        const current = secrets.get(action.secret);
        const material = { authority: "authority" in action ? secrets.get(action.authority) : undefined, current };
        const issued = await issueCertificate(action, material, { now: at, durationDays: 90 });
        const isAuthority = action.kind.endsWith("Authority");
        const certificate = issued.kind === "pair" ? issued.pair.certificate : issued.certificate;
        const key = issued.kind === "pair" ? { [isAuthority ? "ca.key" : "tls.key"]: issued.pair.privateKey } : {};
        const data = encodeData({ [isAuthority ? "ca.crt" : "tls.crt"]: certificate, ...key });
        secrets.set(action.secret, { ...secret({}), data: { ...current?.data, ...data } });
      }
    };
    expect(planAt(now).actions.map(({ kind }) => kind)).toEqual([
      "createAuthority",
      "createLeaf",
      "createLeaf",
      "createLeaf",
    ]);
    await carryOut(now);
    expect([...secrets.keys()]).toEqual(["db-ca", "db-server", "db-replication", "db-pooler"]);
    expect(certificateSecretNames(cluster)).toEqual(["db-ca", "db-server", "db-replication", "db-pooler"]);
    expect(planAt(now)).toMatchObject({ actions: [], failures: [], warnings: [] });

    const keys = () => [...secrets.values()].map(({ data }) => data?.["ca.key"] ?? data?.["tls.key"]);
    const before = keys();
    const later = now + 84 * day;
    expect(planAt(later).actions.map(({ kind }) => kind)).toEqual([
      "renewAuthority",
      "renewLeaf",
      "renewLeaf",
      "renewLeaf",
    ]);
    await carryOut(later);
    expect(planAt(later).actions).toEqual([]);
    expect(keys()).toEqual(before);

    // A lost authority takes what it signed with it.
    secrets.delete("db-ca");
    await carryOut(later);
    expect(planAt(later).actions.map(({ kind, secret: name }) => `${kind} ${name}`)).toEqual([
      "renewLeaf db-server",
      "renewLeaf db-replication",
      "renewLeaf db-pooler",
    ]);
    await carryOut(later);
    expect(planAt(later).actions).toEqual([]);
  });

  test("name what is missing to issue one", async () => {
    const action = { kind: "createLeaf" as const, secret: "db-server", authority: "db-ca", leaf, reason: "" };
    await expect(
      issueCertificate(action, { authority: secret({ "ca.crt": authority.certificate }) }, validity),
    ).rejects.toThrow("secret db-ca has no ca.key, which is needed to issue a certificate");
  });

  test("carry the wanted names", async () => {
    const names = serverDnsNames(cluster, defaultBuildContext);
    const made = await createLeaf(authority, { ...leaf, dnsNames: names }, validity);
    expect(certificateFacts(parseCertificates(made.certificate, "tls.crt")[0]).dnsNames).toEqual(names);
  });
});
