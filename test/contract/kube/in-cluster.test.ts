import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadInClusterConnection } from "../../../src/kube/connection.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cnpg-ts-sa-"));
  writeFileSync(join(folder, "ca.crt"), "CA");
  writeFileSync(join(folder, "token"), "first\n");
  writeFileSync(join(folder, "namespace"), "cnpg-system");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the connection of a pod", () => {
  const env = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

  it("goes by address, with the service account's authority and namespace", () => {
    const connection = loadInClusterConnection({ clock: createFakeClock(), env, folder });
    expect(connection).toMatchObject({ server: "https://10.96.0.1:443", ca: "CA", namespace: "cnpg-system" });
    const overV6 = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT_HTTPS: "6443" };
    expect(loadInClusterConnection({ clock: createFakeClock(), env: overV6, folder }).server).toBe(
      "https://[fd00::1]:6443",
    );
  });

  it("reads the token again after a while, or at once when it was refused, and keeps the old one while none is there", async () => {
    const clock = createFakeClock();
    const { token } = loadInClusterConnection({ clock, env, folder });
    expect(token?.()).toBe("first");
    writeFileSync(join(folder, "token"), "second");
    expect(token?.()).toBe("first");
    expect(token?.({ fresh: true })).toBe("second");
    writeFileSync(join(folder, "token"), "third");
    await clock.advance(31_000);
    expect(token?.()).toBe("third");
    rmSync(join(folder, "token"));
    await clock.advance(31_000);
    expect(token?.()).toBe("third");
  });

  it("says what to do outside of a pod", () => {
    expect(() => loadInClusterConnection({ clock: createFakeClock(), env: {}, folder })).toThrow(
      "name a kubeconfig file",
    );
  });
});
