import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { resources } from "../../../src/kube/resources.ts";
import { createAuthority, createLeaf, renewLeaf } from "../../../src/pki/issue.ts";
import { ensureCertificates } from "../../../src/plugin/barman-cloud/plugin-certificates.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createLab, type Lab, pluginName, serverName } from "../rpc/lab.ts";

const run = promisify(execFile);
const day = 86_400_000;
const namespace = "cnpg-system";

describe("a renewed certificate of the plugin", () => {
  let lab: Lab;
  beforeEach(async () => {
    lab = await createLab();
  });
  afterEach(() => lab.end());

  test("is accepted by a peer that knows the old one only, on both sides", async () => {
    const validity = { now: Date.now(), durationDays: 90 };
    const authority = await createAuthority({ commonName: "plugin", organizationalUnit: "" }, validity);
    const bundle = (leaf: string) => `${leaf}${authority.certificate}`;
    const requests = {
      server: { commonName: serverName, usage: "server" as const, dnsNames: [serverName] },
      client: { commonName: "client", usage: "client" as const, dnsNames: [] },
    };
    const [server, client] = await Promise.all([
      createLeaf(authority, requests.server, validity),
      createLeaf(authority, requests.client, validity),
    ]);
    const renewed = {
      server: bundle(renewLeaf(authority, server.privateKey, requests.server, validity)),
      client: bundle(renewLeaf(authority, client.privateKey, requests.client, validity)),
    };
    const old = { server: bundle(server.certificate), client: bundle(client.certificate) };
    const combinations = [
      { serves: old.server, knows: renewed.server, shows: old.client, checks: renewed.client },
      { serves: renewed.server, knows: old.server, shows: renewed.client, checks: old.client },
      { serves: renewed.server, knows: renewed.server, shows: old.client, checks: old.client },
    ];
    const { server: running } = await lab.start("tls", { identity: { name: pluginName, version: "1" }, services: {} });
    for (const { serves, knows, shows, checks } of combinations) {
      await lab.writeFiles({
        server: { cert: serves, key: server.privateKey },
        client: { cert: checks, key: client.privateKey },
      });
      await running.reload();
      const plugin = await lab.load(
        lab.tlsEndpoint(running.address, {
          serverRoots: knows,
          clientCertificate: shows,
          clientKey: client.privateKey,
        }),
      );
      expect(plugin.metadata.version).toBe("1");
    }
    // One authority for both, but what is meant for a server is no client.
    const posing = lab.pool(
      lab.tlsEndpoint(running.address, {
        serverRoots: old.server,
        clientCertificate: old.server,
        clientKey: server.privateKey,
      }),
    );
    await expect(posing.load([pluginName], { budgetMs: 1_000 })).rejects.toMatchObject({ kind: "unavailable" });
  });
});

describe("the plugin's Secrets", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "plugin-certificates-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  function setUp() {
    const clock = createFakeClock(Date.now());
    const api = createFakeKubeApi({ clock });
    api.seed(resources.services, {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        namespace,
        name: "barman-cloud",
        annotations: { "cnpg.io/pluginServerSecret": "server", "cnpg.io/pluginClientSecret": "client" },
      },
    });
    const tls = {
      certificateFile: join(folder, "server/tls.crt"),
      keyFile: join(folder, "server/tls.key"),
      clientRootsFile: join(folder, "client/tls.crt"),
    };
    const { logger } = captureLogs();
    const deps = { api, clock, logger, files: createFiles(), namespace, service: "barman-cloud", tls };
    const secret = (name: string) => api.peek(resources.secrets, { namespace, name });
    const text = (name: string, key: string) => Buffer.from(secret(name)?.data?.[key] ?? "", "base64").toString();
    return { api, clock, deps, tls, secret, text };
  }

  test("are made, and OpenSSL agrees with what they say", async () => {
    const { deps, tls, text } = setUp();
    await ensureCertificates(deps);
    expect(await readFile(tls.certificateFile, "utf8")).toBe(text("server", "tls.crt"));
    expect(await readFile(tls.clientRootsFile, "utf8")).toBe(text("client", "tls.crt"));
    const verify = (purpose: string, file: string, ...more: string[]) =>
      run("openssl", ["verify", "-purpose", purpose, "-CAfile", file, ...more, file]);
    await verify("sslserver", tls.certificateFile, "-verify_hostname", "barman-cloud");
    await verify("sslserver", tls.certificateFile, "-verify_hostname", "barman-cloud.cnpg-system.svc");
    await verify("sslclient", tls.clientRootsFile);
    await expect(verify("sslclient", tls.certificateFile)).rejects.toThrow();
  });

  test("stay as they are until their last days, and are then renewed with the same keys", async () => {
    const { deps, clock, tls, text } = setUp();
    await ensureCertificates(deps);
    const [certificate, key] = [text("server", "tls.crt"), text("server", "tls.key")];
    clock.setWallClock(clock.now() + 70 * day);
    await ensureCertificates(deps);
    expect(text("server", "tls.crt")).toBe(certificate);
    clock.setWallClock(clock.now() + 7 * day);
    await ensureCertificates(deps);
    expect(text("server", "tls.crt")).not.toBe(certificate);
    expect(text("server", "tls.key")).toBe(key);
    expect(await readFile(tls.certificateFile, "utf8")).toBe(text("server", "tls.crt"));
  });

  test("that were deleted come again; those of somebody else are used untouched, and refused when useless", async () => {
    const { api, deps, secret, text, tls } = setUp();
    await ensureCertificates(deps);
    await api.delete(resources.secrets, { namespace, name: "client" });
    await ensureCertificates(deps);
    expect(text("client", "tls.crt")).toContain("BEGIN CERTIFICATE");

    const validity = { now: Date.now(), durationDays: 1 };
    const other = await createAuthority({ commonName: "other", organizationalUnit: "" }, validity);
    const mine = await createLeaf(other, { commonName: "mine", usage: "server", dnsNames: ["mine"] }, validity);
    const data = (pair: typeof mine) => ({
      "tls.crt": Buffer.from(pair.certificate).toString("base64"),
      "tls.key": Buffer.from(pair.privateKey).toString("base64"),
    });
    const live = secret("server");
    if (!live) throw new Error("no Secret");
    const foreign = { ...live, metadata: { namespace, name: "server" } };
    const put = async (content: Record<string, string>) => {
      await api.delete(resources.secrets, { namespace, name: "server" });
      api.seed(resources.secrets, { ...foreign, data: content });
    };
    await put(data(mine));
    await ensureCertificates(deps);
    expect(text("server", "tls.crt")).toBe(mine.certificate);
    expect(await readFile(tls.certificateFile, "utf8")).toBe(mine.certificate);
    await put({ ...data(mine), "tls.key": "" });
    await expect(ensureCertificates(deps)).rejects.toThrow(/Secret server cannot be used.*delete it to have it made/);
  });

  test("must be named by the Service", async () => {
    const { api, deps } = setUp();
    await api.delete(resources.services, { namespace, name: "barman-cloud" });
    api.seed(resources.services, { apiVersion: "v1", kind: "Service", metadata: { namespace, name: "barman-cloud" } });
    await expect(ensureCertificates(deps)).rejects.toThrow(/no annotation cnpg.io\/pluginServerSecret/);
  });
});
