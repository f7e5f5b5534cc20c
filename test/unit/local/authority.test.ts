import { createPrivateKey, X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { createAuthority, openAuthority } from "../../../local/pki/authority.ts";
import { integer, objectIdentifier, time } from "../../../local/pki/der.ts";
import { renderKubeconfig } from "../../../local/pki/kubeconfig.ts";

describe("a certificate authority", () => {
  const authority = createAuthority("test-ca");
  const root = new X509Certificate(authority.certificate);

  it("signs itself as an authority", () => {
    expect(root.ca).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect(root.subject).toBe("CN=test-ca");
  });

  it("issues certificates that chain to it and carry what was asked for", () => {
    const pair = authority.issue({
      commonName: "system:node:node-1",
      organizations: ["system:nodes"],
      dnsNames: ["node-1"],
      ipAddresses: ["10.213.0.11"],
    });
    const leaf = new X509Certificate(pair.certificate);
    expect(leaf.checkIssued(root)).toBe(true);
    expect(leaf.verify(root.publicKey)).toBe(true);
    expect(leaf.checkPrivateKey(createPrivateKey(pair.key))).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.subject).toBe("O=system:nodes\nCN=system:node:node-1");
    expect(leaf.checkIP("10.213.0.11")).toBe("10.213.0.11");
    expect(leaf.checkHost("node-1")).toBe("node-1");
    expect(leaf.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  });

  it("goes on after it was read back from its files", () => {
    const again = openAuthority("test-ca", { certificate: authority.certificate, key: authority.key });
    const leaf = new X509Certificate(again.issue({ commonName: "late" }).certificate);
    expect(leaf.checkIssued(root)).toBe(true);
    expect(leaf.verify(root.publicKey)).toBe(true);
  });

  it("refuses what is not an IPv4 address", () => {
    expect(() => authority.issue({ commonName: "x", ipAddresses: ["::1"] })).toThrow("::1 is not an IPv4 address");
  });
});

describe("DER", () => {
  it.each([
    ["00", "020100"],
    ["7f", "02017f"],
    ["80", "02020080"],
    ["000001", "020101"],
  ])("writes the integer %s without surplus and never negative", (input, output) => {
    expect(integer(Buffer.from(input, "hex")).toString("hex")).toBe(output);
  });

  it("writes object identifiers with arcs over 127", () => {
    expect(objectIdentifier("1.2.840.10045.4.3.2").toString("hex")).toBe("06082a8648ce3d040302");
  });

  it("changes the kind of time in 2050, as certificates must", () => {
    expect(time(new Date("2049-12-31T23:59:59Z")).toString("latin1")).toBe("\x17\x0d491231235959Z");
    expect(time(new Date("2050-01-01T00:00:00Z")).toString("latin1")).toBe("\x18\x0f20500101000000Z");
  });
});

describe("a kubeconfig", () => {
  it("holds everything inline", () => {
    const text = renderKubeconfig({
      name: "local",
      server: "https://127.0.0.1:20000",
      authority: "CA",
      client: { certificate: "CERT", key: "KEY" },
    });
    const config = parse(text);
    expect(config["current-context"]).toBe("local");
    expect(config.clusters[0].cluster.server).toBe("https://127.0.0.1:20000");
    expect(Buffer.from(config.users[0].user["client-key-data"], "base64").toString()).toBe("KEY");
  });
});
