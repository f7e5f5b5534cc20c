import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ports } from "../../src/api/constants.ts";
import { renewLeaf } from "../../src/pki/issue.ts";
import { createCluster, type TestCluster } from "./support/cluster.ts";
import { getObject, kubectl } from "./support/kubectl.ts";
import { forwardPort } from "./support/port-forward.ts";
import { servedCertificate } from "./support/served-certificate.ts";
import { waitFor } from "./support/wait.ts";

interface Secret {
  data: Record<string, string>;
}

const day = 86_400_000;

describe("a server certificate near its end", () => {
  let cluster: TestCluster;
  const secret = async (name: string, key: string) => {
    const object = await getObject<Secret>(cluster.namespace, "secret", name);
    return Buffer.from(object?.data[key] ?? "", "base64").toString();
  };
  const served = async (port: number, protocol: "tls" | "postgres") => {
    const forward = await forwardPort(cluster.namespace, "certs-1", port);
    try {
      return await servedCertificate(forward.port, protocol);
    } finally {
      forward.close();
    }
  };

  beforeAll(async () => {
    cluster = await createCluster("certs", { instances: 1 });
    await cluster.healthy(1);
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  test("is renewed with the same key and served by manager and PostgreSQL without a restart", async () => {
    const started = await cluster.sql("certs-1", "select pg_postmaster_start_time()", "postgres");
    const authority = {
      certificate: await secret("certs-ca", "ca.crt"),
      privateKey: await secret("certs-ca", "ca.key"),
    };
    const key = await secret("certs-server", "tls.key");
    const dnsNames = (await cluster.get()).status?.certificates?.serverAltDNSNames ?? [];
    const leaf = { commonName: "certs-rw", usage: "server", dnsNames } as const;
    const expiring = renewLeaf(authority, key, leaf, { now: Date.now(), durationDays: 1 });
    const patch = JSON.stringify({ data: { "tls.crt": Buffer.from(expiring).toString("base64") } });
    await kubectl(["patch", "secret", "certs-server", "-n", cluster.namespace, "--type=merge", "-p", patch]);

    const renewed = await waitFor("a renewed certificate", 60_000, async () => {
      const certificate = new X509Certificate(await secret("certs-server", "tls.crt"));
      return certificate.validToDate.getTime() > Date.now() + 60 * day ? certificate : undefined;
    });
    expect(renewed.checkIssued(new X509Certificate(authority.certificate))).toBe(true);
    expect(await secret("certs-server", "tls.key")).toBe(key);
    for (const [port, protocol] of [
      [ports.status, "tls"],
      [ports.postgres, "postgres"],
    ] as const) {
      await waitFor(`the renewed certificate on port ${port}`, 60_000, async () => {
        return (await served(port, protocol)) === renewed.fingerprint256;
      });
    }
    expect(await cluster.sql("certs-1", "select pg_postmaster_start_time()", "postgres")).toBe(started);
    await cluster.healthy(1);
  });
});
