import { describe, expect, test } from "vitest";
import { compileListen } from "../../../../src/plugin/barman-cloud/listen-flags.ts";
import { planCertificate } from "../../../../src/plugin/barman-cloud/plan-certificate.ts";
import { parseSidecarEnvironment } from "../../../../src/plugin/barman-cloud/sidecar-environment.ts";

describe("the environment of a sidecar", () => {
  const env = { NAMESPACE: "shop", CLUSTER_NAME: "orders", POD_NAME: "orders-1", SPOOL_DIRECTORY: "/spool" };

  test("is checked as a whole", () => {
    expect(() => parseSidecarEnvironment("instance", { NAMESPACE: "shop", POD_NAME: "" })).toThrow(
      "instance needs CLUSTER_NAME, POD_NAME, SPOOL_DIRECTORY in its environment",
    );
    expect(() => parseSidecarEnvironment("restore", { ...env, CLUSTER_NAME: undefined })).not.toThrow();
  });

  test("names the kinds of the operator in use", () => {
    const fork = { CUSTOM_CNPG_GROUP: "postgresql.example.com", CUSTOM_CNPG_VERSION: "v2" };
    expect(parseSidecarEnvironment("instance", env).clusters).toMatchObject({
      group: "postgresql.cnpg.io",
      version: "v1",
    });
    expect(parseSidecarEnvironment("instance", { ...env, ...fork }).backups).toMatchObject({
      group: "postgresql.example.com",
      version: "v2",
      plural: "backups",
    });
  });
});

describe("where the operator mode listens", () => {
  const tls = { serverAddress: ":9090", serverCert: "c", serverKey: "k", clientCert: "r" };
  test("on a socket unless told, on TCP with all four flags", () => {
    expect(compileListen({})).toEqual({ kind: "socket" });
    expect(compileListen({ pluginPath: "/p" })).toEqual({ kind: "socket", folder: "/p" });
    expect(compileListen(tls)).toMatchObject({ kind: "tls", address: ":9090", clientRootsFile: "r" });
    expect(() => compileListen({ ...tls, serverKey: "" })).toThrow("--server-key missing");
    expect(() => compileListen({ ...tls, pluginPath: "/p" })).toThrow(/--plugin-path is for a socket/);
  });
});

describe("a certificate of the plugin", () => {
  const day = 86_400_000;
  const present = {
    kind: "present" as const,
    notBefore: 0,
    notAfter: 90 * day,
    dnsNames: ["barman-cloud"],
    hasKey: true,
  };
  const unreadable = { kind: "unreadable" as const, reason: "it has no tls.key" };
  const ours = { name: "s", ours: true };
  const theirs = { name: "s", ours: false };
  test.each([
    ["is made when it is missing", { kind: "absent" as const }, ours, 0, "create"],
    ["stays while it is good", present, ours, 74 * day, "keep"],
    ["is renewed in its last days", present, ours, 76 * day, "renew"],
    ["is renewed when the Service has another name", { ...present, dnsNames: [] }, ours, 0, "renew"],
    ["of somebody else is left alone", { ...present, dnsNames: [] }, theirs, 89 * day, "keep"],
    ["that is damaged is made anew if it is ours", unreadable, ours, 0, "create"],
    ["that is damaged and not ours is refused", unreadable, theirs, 0, "refuse"],
  ])("%s", (_, found, secret, now, kind) => {
    expect(planCertificate(found, secret, now, ["barman-cloud"]).kind).toBe(kind);
  });
});
