import { describe, expect, test } from "vitest";
import { checkContext } from "../../../local/own-context.ts";

function kubeconfig(...contexts: string[]): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:6443" } }],
    users: [{ name: "u", user: {} }],
    contexts: contexts.map((name) => ({ name, context: { cluster: "c", user: "u" } })),
  });
}

describe("the context of the user's own cluster", () => {
  test("passes when the kubeconfig has it", () => {
    expect(() => checkContext("prod", kubeconfig("dev", "prod"))).not.toThrow();
  });

  test("is refused with the names that there are", () => {
    expect(() => checkContext("prd", kubeconfig("dev", "prod"))).toThrow(
      "Your kubeconfig has no context prd. It has: dev, prod.",
    );
  });

  test("is refused when there is none", () => {
    expect(() => checkContext("prod", kubeconfig())).toThrow("It has none.");
  });
});
