import { describe, expect, it } from "vitest";
import { instanceUrl, usesTls } from "../../../src/operator/status-client.ts";
import { aCluster, aPod } from "../plan/cluster/fixtures.ts";

describe("URLs of instances", () => {
  it.each([
    ["10.1.2.3", "https://10.1.2.3:8000/pg/status"],
    ["2001:db8::17", "https://[2001:db8::17]:8000/pg/status"],
    ["fe80::1%eth0", "https://[fe80::1]:8000/pg/status"],
  ])("of %s", (ip, expected) => {
    const url = instanceUrl("https", ip, "/pg/status");
    expect(url).toBe(expected);
    expect(new URL(url).port).toBe("8000");
  });
});

describe("the scheme", () => {
  it("is TLS exactly when the pod's command says so", () => {
    const pod = aPod(aCluster(), 1);
    expect(usesTls(pod)).toBe(true);
    const [container] = pod.spec?.containers ?? [];
    if (!container) throw new Error("the pod has no container");
    const command = (container.command ?? []).filter((it) => it !== "--status-port-tls");
    expect(usesTls({ ...pod, spec: { ...pod.spec, containers: [{ ...container, command }] } })).toBe(false);
  });
});
