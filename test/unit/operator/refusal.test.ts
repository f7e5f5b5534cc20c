import { expect, test } from "vitest";
import { isRefusal, NotOwnedError } from "../../../src/operator/refusal.ts";
import { KubeError } from "../../../src/ports/kube-api.ts";

const forbidden = { kind: "forbidden", status: 403 } as const;

test.each<[string, unknown, boolean]>([
  ["an object of somebody else", new NotOwnedError("taken"), true],
  ["a field that the server does not take", new KubeError("bad", { kind: "invalid", status: 422 }), true],
  ["a quota", new KubeError("quota", forbidden), true],
  ["a namespace that is being deleted", new KubeError("ending", { ...forbidden, namespaceTerminating: true }), false],
  ["a server that is away", new KubeError("away", { kind: "unavailable", status: 0 }), false],
  ["an object that somebody else wrote first", new KubeError("stale", { kind: "conflict", status: 409 }), false],
  ["a fault of the program", new TypeError("undefined"), false],
])("%s is a matter for a person: %s", (_, error, expected) => {
  expect(isRefusal(error)).toBe(expected);
});
