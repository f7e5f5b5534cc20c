import { describe, expect, it } from "vitest";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { createAdmissionHandlers } from "../../../src/operator/admission-handlers.ts";
import { answerReview } from "../../../src/operator/admission-review.ts";

const handlers = createAdmissionHandlers(defaultBuildContext, { volumeSnapshots: false });

interface Response {
  allowed: boolean;
  patch?: string;
  warnings?: string[];
  status?: {
    message: string;
    code: number;
    details?: { name: string; kind: string; causes: { field: string; message: string }[] };
  };
}

function ask(path: string, request: { operation?: string; object: unknown; oldObject?: unknown }): Response {
  const handler = handlers.get(path);
  if (!handler) throw new Error(`nothing is served at ${path}`);
  const text = JSON.stringify({ request: { uid: "u1", operation: "CREATE", ...request } });
  return (JSON.parse(answerReview(text, handler).body) as { response: Response }).response;
}

const validate = (kind: string) => `/validate-postgresql-cnpg-io-v1-${kind}`;
const named = (spec: unknown, annotations: Record<string, string> = {}) => ({
  metadata: { name: "it", namespace: "default", annotations },
  spec,
});
const cluster = { name: "c" };

describe("the defaulting of Clusters", () => {
  it.each([
    ["a map of tablespaces", { tablespaces: { hot: { storage: { size: "1Gi" } } } }],
    ["no spec", undefined],
    ["a text for the monitoring", { monitoring: { customQueriesConfigMap: 5 } }],
  ])("leaves %s to the schema", (_, spec) => {
    const mutate = "/mutate-postgresql-cnpg-io-v1-cluster";
    expect(ask(mutate, { object: named(spec) })).toMatchObject({ allowed: true });
  });
});

describe("webhooks of kinds other than Cluster", () => {
  it.each(["backup", "database", "scheduledbackup"])("leave a %s as its schema made it", (kind) => {
    const answer = ask(`/mutate-postgresql-cnpg-io-v1-${kind}`, { object: named({ cluster }) });
    expect(answer).toEqual({ uid: "u1", allowed: true });
  });

  it.each([
    [
      "backup",
      { cluster, method: "plugin" },
      "spec.pluginConfiguration",
      "cannot be empty when the backup method is plugin",
    ],
    ["backup", { cluster, method: "volumeSnapshot" }, "spec.method", "missing VolumeSnapshot CRD"],
    ["backup", { cluster, online: true }, "spec.online", "only if the backup method is volumeSnapshot"],
    ["scheduledbackup", { cluster, schedule: "0 0 0 * * 7" }, "spec.schedule", "7"],
    [
      "scheduledbackup",
      { cluster, schedule: "0 0 0 * * *", online: true },
      "spec.online",
      "if the method is volumeSnapshot",
    ],
    [
      "database",
      { cluster, name: "d", owner: "o", extensions: [{ name: "e" }, { name: "e" }] },
      "spec.extensions[1].name",
      "Duplicate value",
    ],
    [
      "pooler",
      { cluster, pgbouncer: { poolMode: "session", parameters: { nonsense: "1" } } },
      "spec.pgbouncer.parameters",
      "nonsense",
    ],
  ])("refuse a %s with %j", (kind, spec, field, why) => {
    const answer = ask(validate(kind), { object: named(spec) });
    expect(answer.allowed).toBe(false);
    expect(answer.status?.code).toBe(422);
    expect(answer.status?.message).toContain(field);
    expect(answer.status?.message).toContain(why);
    const causes = answer.status?.details?.causes ?? [];
    expect(causes.map((cause) => `${cause.field}: ${cause.message}`).join()).toContain(why);
    expect(causes.map((cause) => cause.field).join()).toContain(field);
  });

  it("admit what the annotation exempts, with a warning", () => {
    const object = named({ cluster, method: "plugin" }, { "cnpg.io/validation": "disabled" });
    const answer = ask(validate("backup"), { object });
    expect(answer.allowed).toBe(true);
    expect(answer.warnings?.join()).toMatch(/validation/i);
  });

  it("warn of a schedule without seconds, which is read with its first field as seconds", () => {
    const answer = ask(validate("scheduledbackup"), { object: named({ cluster, schedule: "0 0 * * *" }) });
    expect(answer.allowed).toBe(true);
    expect(answer.warnings?.join()).toContain("six arguments");
  });
});
