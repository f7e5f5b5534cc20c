import { describe, expect, it } from "vitest";
import type { PostgresStatus } from "../../../../src/api/pg-status.ts";
import { phases } from "../../../../src/api/phases.ts";
import type { ManagerUpload, ObservedCluster } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, aStatus, now, plan, primaryStatus, stepsOf, withImage } from "./fixtures.ts";

type Change = Omit<Partial<PostgresStatus>, "cnpgTs"> & { cnpgTs?: PostgresStatus["cnpgTs"] | undefined };
type Statuses = Partial<Record<string, Change | null>>;

const hash = "b".repeat(64);
const old = "a".repeat(64);
const ago = (ms: number) => now.getTime() - ms;

/** A healthy cluster of ours whose instances run `old`; `null` = that instance is silent. */
function given(statuses: Statuses = {}, uploads: Record<number, Partial<ManagerUpload>> = {}, inPlace = true) {
  const { cluster, observed } = aHealthyCluster();
  const instances = observed.instances.map((it) => {
    const change = statuses[it.name];
    if (change === null) {
      return { kind: "silent" as const, name: it.name, pod: it.pod, ready: true, reason: "it is away" };
    }
    const base = it.name === "c-1" ? primaryStatus() : aStatus();
    const { cnpgTs = {}, ...told } = change ?? {};
    const isForeign = change !== undefined && "cnpgTs" in change && change.cnpgTs === undefined;
    const status = { ...base, executableHash: old, ...told, ...(isForeign ? {} : { cnpgTs }) };
    return { kind: "answered" as const, name: it.name, pod: it.pod, ready: true, status };
  });
  const managerUploads = new Map(
    Object.entries(uploads).map(([serial, it]) => [
      `uid-pod-${serial}`,
      { kind: "sending", atMs: ago(1_000), hash, oldHash: old, attempts: 0, ...it } satisfies ManagerUpload,
    ]),
  );
  const architectures = [{ goArch: "amd64", hash }];
  const operator = { ...observed.operator, onlineUpdateEnabled: inPlace, architectures, managerHash: hash };
  return { cluster: withImage(cluster), observed: { ...observed, instances, managerUploads, operator } };
}

function run({ cluster, observed }: { cluster: Parameters<typeof plan>[0]; observed: ObservedCluster }) {
  const result = plan(cluster, observed);
  const sent = result.actions.flatMap((it) => (it.kind === "sendManager" ? [it.target.name] : []));
  const events = result.actions.flatMap((it) => (it.kind === "event" ? [it.message] : []));
  const { phase, phaseReason } = result.status;
  return { steps: stepsOf(result.actions), sent, events, phase, phaseReason, requeueAfterMs: result.requeueAfterMs };
}

const new3 = { "c-3": { executableHash: hash } };
const replicas = { "c-2": { executableHash: hash }, ...new3 };
const everybody = { "c-1": { executableHash: hash }, ...replicas };

describe("whom the manager goes to", () => {
  it.each<[string, Statuses, string[]]>([
    ["a replica first", {}, ["c-3"]],
    ["the replica that lags most before the others", { "c-2": { receivedLsn: "0/4000000" } }, ["c-2"]],
    ["then the other one", new3, ["c-2"]],
    ["the primary last", replicas, ["c-1"]],
    ["nobody when all have it", everybody, []],
    ["nobody while one tells no hash, and that one is replaced", { "c-3": { executableHash: "" } }, []],
    ["nobody whose manager is another's", { "c-1": { cnpgTs: undefined }, ...replicas }, []],
    ["past one whose manager is another's", { "c-3": { cnpgTs: undefined } }, ["c-2"]],
    ["nobody while the one whose turn it is takes a backup", { "c-3": { cnpgTs: { backups: ["uid"] } } }, []],
    ["nobody while one is away", { "c-2": null }, []],
  ])("%s", (_, statuses, names) => {
    expect(run(given(statuses)).sent).toEqual(names);
  });

  it("is nobody unless that is wished for", () => {
    const outcome = run(given({}, {}, false));
    expect(outcome.sent).toEqual([]);
    expect(outcome.phase).toBe(phases.healthy);
  });

  it("is told with both hashes and the phase", () => {
    const { cluster, observed } = given(replicas);
    const result = plan(cluster, observed);
    expect(result.status.phase).toBe(phases.onlineUpgrading);
    expect(result.actions.find((it) => it.kind === "sendManager")).toMatchObject({
      target: { name: "c-1", uid: "uid-pod-1" },
      goArch: "amd64",
      hash,
      oldHash: old,
    });
  });

  it("waits for a person where no manager fits the machine", () => {
    const outcome = run(given({ "c-3": { instanceArch: "arm64" } }));
    expect(outcome.sent).toEqual([]);
    expect(outcome.phase).toBe(phases.architectureMissing);
    expect(outcome.phaseReason).toBe(
      "encountered an error while upgrading the instance manager: invalid architecture: arm64",
    );
  });
});

describe("after it was sent", () => {
  it.each<[string, Partial<ManagerUpload>, Partial<PostgresStatus>]>([
    ["is on its way", {}, {}],
    ["takes over", { kind: "sent" }, {}],
  ])("an instance that %s is waited for", (_, upload, status) => {
    const outcome = run(given({ "c-3": status }, { 3: upload }));
    expect(outcome.sent).toEqual([]);
    expect(outcome.phase).toBe(phases.onlineUpgrading);
    expect(outcome.requeueAfterMs).toBeLessThanOrEqual(1_000);
  });

  it("an instance that says itself that it is being given one is waited for", () => {
    const outcome = run(given({ "c-3": { isInstanceManagerUpgrading: true } }));
    expect(outcome.sent).toEqual([]);
    expect(outcome.requeueAfterMs).toBe(1_000);
  });

  it("the take-over is told once, and the next one follows", () => {
    const outcome = run(given(new3, { 3: { kind: "sent" } }));
    expect(outcome.events).toEqual(["Instance manager has been upgraded on c-3 (oldHash: aaaaaa — newHash: bbbbbb)"]);
    expect(outcome.steps).toContain("forgetManager");
    expect(outcome.sent).toEqual(["c-2"]);
  });

  it("one that never comes back with it is told and tried again", () => {
    const outcome = run(given({}, { 3: { kind: "sent", atMs: ago(61_000) } }));
    expect(outcome.events).toEqual([
      "Error while upgrading instance manager on c-3 (hash: bbbbbb): it did not come back with what it was sent",
    ]);
    expect(outcome.sent).toEqual(["c-3"]);
  });

  it.each<[string, Partial<ManagerUpload>, number | undefined]>([
    ["a first refusal is followed by another try within a second", { kind: "refused", attempts: 1 }, 500],
    ["one that is over is tried again", { kind: "refused", attempts: 1, atMs: ago(1_001) }, undefined],
    ["many refusals by one within a minute", { kind: "refused", attempts: 30, atMs: ago(30_000) }, 30_000],
    ["a failure by one within ten seconds", { kind: "failed", attempts: 1, atMs: ago(4_000) }, 6_000],
    ["many failures by one within five minutes", { kind: "failed", attempts: 30, atMs: ago(290_000) }, 10_000],
  ])("%s", (_, upload, waits) => {
    const outcome = run(given({}, { 3: { atMs: ago(500), ...upload } }));
    expect(outcome.sent).toEqual(waits === undefined ? ["c-3"] : []);
    if (waits === undefined) return;
    expect(outcome.requeueAfterMs).toBe(waits);
    expect(outcome.phase).toBe(phases.healthy);
  });
});

describe("a primary that is silent", () => {
  it.each<[string, Record<number, Partial<ManagerUpload>>, string[]]>([
    ["while it takes over is no reason to say so", { 1: { kind: "sent" } }, []],
    ["a minute later is one", { 1: { kind: "sent", atMs: ago(61_000) } }, ["PrimaryStatusCheckFailed"]],
  ])("%s", (_, uploads, reasons) => {
    const { cluster, observed } = given({ "c-1": null }, uploads);
    const result = plan(cluster, observed);
    expect(result.actions.flatMap((it) => (it.kind === "event" ? [it.event] : []))).toEqual(reasons);
  });

  it("and alone while it takes over is no fault of communication", () => {
    const { cluster, observed } = given({ "c-1": null, "c-2": null, "c-3": null }, { 1: { kind: "sent" } });
    expect(plan(cluster, observed).status.phase).not.toBe(phases.statusExtractionError);
  });
});
