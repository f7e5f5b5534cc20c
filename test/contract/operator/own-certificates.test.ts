import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, beforeEach, expect, it } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { OperatorOptions } from "../../../src/operator/operator-options.ts";
import { createMetricsServer, createWebhook } from "../../../src/operator/operator-servers.ts";
import { compileSettings, type SettingSource } from "../../../src/operator/settings.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { createMetrics } from "../../../src/runtime/metrics.ts";
import type { Runnable } from "../../../src/runtime/runnable.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs, type LogCapture } from "../../support/log-capture.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";

const namespace = "cnpg-system";
const dayMs = 86_400_000;
const soon = { timeout: 20_000, interval: 20 };

let clock: FakeClock;
let api: FakeKubeApi;
let logs: LogCapture;
let stop: AbortController;
let running: Promise<void>[];
let port: number;
let folder: string;
let authority: TestAuthority;

beforeEach(async () => {
  clock = createFakeClock(Date.now());
  api = createFakeKubeApi({ clock });
  logs = captureLogs();
  stop = new AbortController();
  running = [];
  port = await choosePort();
  folder = mkdtempSync(join(tmpdir(), "cnpg-ts-certificates-"));
  authority = await createTestAuthority();
});

afterEach(async () => {
  stop.abort();
  await Promise.all(running);
  rmSync(folder, { recursive: true, force: true });
  await authority.remove();
});

function optionsOf(): OperatorOptions {
  const flags = {
    metricsAddress: { host: "127.0.0.1", port },
    leaderElect: false,
    leaderLeaseDurationMs: 15_000,
    leaderRenewDeadlineMs: 10_000,
    configMapName: "",
    secretName: "",
    webhookPort: port,
    maxConcurrentReconciles: 1,
  };
  const exec = { run: () => Promise.reject(new Error("nothing runs here")) };
  const { logger } = logs;
  return { flags, api, exec, clock, random: systemRandom, logger, env: {}, failpoint: () => undefined };
}

async function run(...parts: (Runnable | undefined)[]): Promise<void> {
  for (const part of parts) {
    if (!part) throw new Error("nothing keeps the certificate valid");
    running.push(part.run(stop.signal));
    await part.ready?.(stop.signal);
  }
}

async function serveWebhooks(env: SettingSource): Promise<() => Promise<string>> {
  const metrics = createMetrics();
  const facts = { volumeSnapshots: false };
  const settings = compileSettings([env]);
  const { server, upkeep } = await createWebhook(optionsOf(), settings, stop.signal, facts, () => null, metrics);
  await run(server, upkeep);
  return () => metrics.render();
}

/** The certificate that a new connection is shown. */
function served(): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

async function writePair(name: string, commonName: string): Promise<void> {
  const { cert, key } = await authority.issue(commonName);
  writeFileSync(join(folder, `${name}.crt`), cert);
  writeFileSync(join(folder, `${name}.key`), key);
}

it("the certificate of the webhooks is looked at every hour, renewed before its end with its key, and told to both configurations", async () => {
  const webhooks = [{ name: "v.example.org", clientConfig: {}, sideEffects: "None", admissionReviewVersions: ["v1"] }];
  const kinds = [
    ["mutating", resources.mutatingWebhookConfigurations, "MutatingWebhookConfiguration"],
    ["validating", resources.validatingWebhookConfigurations, "ValidatingWebhookConfiguration"],
  ] as const;
  for (const [which, type, kind] of kinds) {
    const metadata = { name: `cnpg-${which}-webhook-configuration` };
    api.seed(type as typeof resources.mutatingWebhookConfigurations, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: kind as "MutatingWebhookConfiguration",
      metadata,
      webhooks,
    });
  }
  const render = await serveWebhooks({ OPERATOR_NAMESPACE: namespace });
  const first = await served();
  expect(Date.parse(first.validTo) - clock.now()).toBeGreaterThan(89 * dayMs);

  // Far from its end a look changes nothing.
  const requests = api.requests.length;
  await clock.advance(3_600_000);
  await expect.poll(() => api.requests.length, soon).toBeGreaterThan(requests);
  expect((await served()).fingerprint256).toBe(first.fingerprint256);

  clock.setWallClock(Date.parse(first.validTo) - 3 * dayMs);
  // Just before the hour is over nobody looks.
  await clock.advance(3_500_000);
  expect((await served()).fingerprint256).toBe(first.fingerprint256);
  await clock.advance(200_000);
  await expect.poll(async () => (await served()).fingerprint256, soon).not.toBe(first.fingerprint256);
  const second = await served();
  expect(Date.parse(second.validTo) - clock.now()).toBeGreaterThan(89 * dayMs);
  expect(second.publicKey.equals(first.publicKey)).toBe(true);
  const secret = api.peek(resources.secrets, { namespace, name: "cnpg-webhook-cert" });
  expect(new X509Certificate((secret && secretText(secret, "tls.crt")) ?? "").fingerprint256).toBe(
    second.fingerprint256,
  );
  for (const [which, type] of kinds) {
    const name = `cnpg-${which}-webhook-configuration`;
    const found = api.peek(type as typeof resources.mutatingWebhookConfigurations, { name });
    expect(found?.webhooks?.[0]?.clientConfig.caBundle).toBe(secret?.data?.["tls.crt"]);
  }
  expect(await render()).toMatch(/^certwatcher_read_certificate_total 3$/m);
});

it("a certificate of the webhooks that somebody else maintains is followed, and one that cannot be used is told and counted", async () => {
  await writePair("apiserver", "first");
  const render = await serveWebhooks({ WEBHOOK_CERT_DIR: folder });
  expect((await served()).subject).toBe("CN=first");
  writeFileSync(join(folder, "apiserver.crt"), (await authority.issue("half")).cert);
  await clock.advance(10_000);
  await expect.poll(() => logs.messages("error"), soon).toHaveLength(1);
  expect((await served()).subject).toBe("CN=first");
  expect(await render()).toMatch(/^certwatcher_read_certificate_errors_total 1$/m);
  await writePair("apiserver", "second");
  await clock.advance(10_000);
  await expect.poll(async () => (await served()).subject, soon).toBe("CN=second");
});

it("metrics are served with a certificate where one is given, which is followed too", async () => {
  await writePair("tls", "first");
  const settings = compileSettings([{ METRICS_CERT_DIR: folder }]);
  const { server, upkeep } = await createMetricsServer(optionsOf(), settings, createMetrics());
  await run(server, upkeep);
  expect((await served()).subject).toBe("CN=first");
  await writePair("tls", "second");
  await clock.advance(10_000);
  await expect.poll(async () => (await served()).subject, soon).toBe("CN=second");
});
