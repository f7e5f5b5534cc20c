import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { processesOf, runScript } from "./own-cluster.ts";

let one: ControlPlane;
let other: ControlPlane;

beforeAll(async () => {
  [one, other] = await Promise.all([startControlPlane(), startControlPlane({ fsync: true })]);
});

afterAll(async () => {
  await Promise.all([one.stop(), other.stop()]);
});

const configMap = (name: string) =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { from: name } });

describe("control planes for tests", () => {
  it("run side by side without seeing each other's objects", async () => {
    await one.kubectl(["create", "-f", "-"], configMap("only-here"));
    await expect(other.kubectl(["get", "configmap", "only-here"])).rejects.toThrow(/not found/);
  });

  it("accept the administrator's token", async () => {
    const args = [
      "--server",
      one.url,
      "--certificate-authority",
      one.caFile,
      "--token",
      one.token,
      "--kubeconfig=/dev/null",
    ];
    expect(await one.kubectl(["auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}", ...args])).toContain(
      "system:masters",
    );
  });

  it.each(["kill", "drain"] as const)("come back on the same address with their objects after a %s", async (how) => {
    await one.kubectl(["create", "-f", "-"], configMap(`before-${how}`));
    await one.stopApiServer(how);
    await expect(one.kubectl(["get", "configmaps"])).rejects.toThrow(/refused/);
    await one.startApiServer();
    expect(await one.kubectl(["get", "configmap", `before-${how}`, "-o", "jsonpath={.data.from}"])).toBe(
      `before-${how}`,
    );
  });

  it("leave nothing when stopped", async () => {
    const third = await startControlPlane();
    const folder = dirname(third.kubeconfig);
    expect(processesOf(join(folder, "etcd.sock"))).not.toEqual([]);
    await third.stop();
    expect(existsSync(folder)).toBe(false);
    expect(processesOf(join(folder, "etcd.sock"))).toEqual([]);
  });

  it("die with the test that was killed, and the next one removes what they wrote", async () => {
    const { output } = await runScript(join(import.meta.dirname, "hold-control-plane.ts"), [], 15_000);
    const folder = /folder=(.*)/.exec(output)?.[1] ?? "";
    expect(folder).toContain("cnpg-ts-cp-");
    await waitFor("end of its servers", async () => processesOf(join(folder, "etcd.sock")).length === 0, {
      timeoutMs: 5_000,
    });
    expect(existsSync(folder)).toBe(true);
    await (await startControlPlane()).stop();
    expect(existsSync(folder)).toBe(false);
  });
});
