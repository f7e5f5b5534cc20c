import { describe, expect, it } from "vitest";
import type { Pod } from "../../../src/api/generated/kubernetes.ts";
import { patchObject, patchStatus } from "../../../src/kube/patch-status.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";

const key = { namespace: "ns", name: "a" };

function aServer() {
  const api = createFakeKubeApi({ clock: createFakeClock() });
  api.seed<Pod>(resources.pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...key, labels: { app: "x" } },
    spec: { containers: [] },
    status: { phase: "Pending", reason: "old" },
  });
  return api;
}

const setPhase = (phase: string) => (pod: Pod) => ({ ...pod, status: { ...pod.status, phase } });

describe("patchStatus", () => {
  it("sends only the fields that differ, on condition of the version that was read", async () => {
    const api = aServer();
    const result = await patchStatus(api, resources.pods, key, setPhase("Running"));
    expect(result.status).toEqual({ phase: "Running", reason: "old" });
    expect(api.requests.at(-1)).toMatchObject({
      verb: "patch",
      subresource: "status",
      body: { type: "merge", body: { status: { phase: "Running" }, metadata: { resourceVersion: "1" } } },
    });
  });

  it("writes nothing when nothing differs or nothing is wanted", async () => {
    const api = aServer();
    await patchStatus(api, resources.pods, key, setPhase("Pending"));
    await patchStatus(api, resources.pods, key, () => undefined);
    expect(api.requests.map((request) => request.verb)).toEqual(["get", "get"]);
  });

  it("starts over from a fresh read on a conflict and keeps what others wrote", async () => {
    const api = aServer();
    let interfere = true;
    api.intercept((request) => {
      if (request.verb !== "patch" || !interfere) return undefined;
      interfere = false;
      const pod = api.peek<Pod>(resources.pods, key) as Pod;
      api.finishDeletion(resources.pods, key);
      api.seed(resources.pods, { ...pod, status: { ...pod.status, message: "theirs" } });
      return undefined;
    });
    const result = await patchStatus(api, resources.pods, key, setPhase("Running"));
    expect(result.status).toEqual({ phase: "Running", reason: "old", message: "theirs" });
    expect(api.requests.map((request) => request.verb)).toEqual(["get", "patch", "get", "patch"]);
  });

  it("gives up after its attempts", async () => {
    const api = aServer();
    api.intercept((request) => (request.verb === "patch" ? fault("conflict") : undefined));
    await expect(patchStatus(api, resources.pods, key, setPhase("Running"), { maxAttempts: 3 })).rejects.toMatchObject({
      kind: "conflict",
    });
    expect(api.requests.filter((request) => request.verb === "patch")).toHaveLength(3);
  });

  it("does not repeat anything but conflicts", async () => {
    const api = aServer();
    api.intercept((request) => (request.verb === "patch" ? fault("unavailable", { after: true }) : undefined));
    await expect(patchStatus(api, resources.pods, key, setPhase("Running"))).rejects.toMatchObject({
      outcomeUnknown: true,
    });
    expect(api.requests).toHaveLength(2);
  });

  it("starts from a copy that it is given, without letting the caller's copy change", async () => {
    const api = aServer();
    const current = api.peek<Pod>(resources.pods, key) as Pod;
    await patchStatus(
      api,
      resources.pods,
      key,
      (pod) => {
        if (pod.status) pod.status.phase = "Running";
        return pod;
      },
      { current },
    );
    expect(api.requests.map((request) => request.verb)).toEqual(["patch"]);
    expect(current.status?.phase).toBe("Pending");
    expect(api.peek<Pod>(resources.pods, key)?.status?.phase).toBe("Running");
  });

  it("never touches anything but the status, and patchObject never the status", async () => {
    const api = aServer();
    const both = (pod: Pod): Pod => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { app: "y" } },
      status: { phase: "Running" },
    });
    await patchStatus(api, resources.pods, key, both);
    expect(api.peek<Pod>(resources.pods, key)).toMatchObject({
      metadata: { labels: { app: "x" } },
      status: { phase: "Running" },
    });
    await patchObject(api, resources.pods, key, (pod) => ({ ...both(pod), status: { phase: "Failed" } }));
    expect(api.peek<Pod>(resources.pods, key)).toMatchObject({
      metadata: { labels: { app: "y" } },
      status: { phase: "Running" },
    });
  });
});
