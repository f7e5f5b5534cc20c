import { describe, expect, it } from "vitest";
import { buildHandlers } from "../../../../src/plugin/framework/handlers.ts";
import { type Interceptor, intercept, logFailures } from "../../../../src/plugin/framework/interceptors.ts";
import { StatusError, statusOf } from "../../../../src/plugin/framework/status-error.ts";
import { WireError } from "../../../../src/rpc/wire/wire-error.ts";
import { captureLogs } from "../../../support/log-capture.ts";

const context = { label: "WAL.Archive", signal: new AbortController().signal };

function handler(serve: () => Promise<Uint8Array>) {
  return { service: "s", path: "/s/m", label: "WAL.Archive", serve };
}

describe("interceptors", () => {
  it("run from the outside in", async () => {
    const order: string[] = [];
    const named =
      (name: string): Interceptor =>
      async (_, next) => {
        order.push(`${name} in`);
        const answer = await next();
        order.push(`${name} out`);
        return answer;
      };
    const serve = () => {
      order.push("handler");
      return Promise.resolve(new Uint8Array([1]));
    };
    const answer = await intercept(handler(serve), [named("a"), named("b")]).serve(new Uint8Array(), context);
    expect(answer).toEqual(new Uint8Array([1]));
    expect(order).toEqual(["a in", "b in", "handler", "b out", "a out"]);
  });

  it.each([
    [new Error("boom"), "error", "Call failed", "UNKNOWN"],
    [new StatusError("NOT_FOUND", "no such segment"), "debug", "Call refused", "NOT_FOUND"],
    [new WireError("definition is not JSON"), "debug", "Call refused", "INVALID_ARGUMENT"],
  ])("log %s", async (error, level, message, status) => {
    const logs = captureLogs();
    const failing = intercept(
      handler(() => Promise.reject(error)),
      [logFailures(logs.logger)],
    );
    await expect(failing.serve(new Uint8Array(), context)).rejects.toBe(error);
    const fields = { call: "WAL.Archive", status, error: error.message };
    expect(logs.records).toEqual([{ level, message, fields }]);
    expect(statusOf(error)).toMatchObject({ status, details: error.message });
  });
});

describe("the handlers of a plugin", () => {
  it("are identity and health when it does nothing", () => {
    const labels = buildHandlers({ name: "a", version: "1" }, {}).map(({ label }) => label);
    expect(labels).toEqual([
      "Identity.GetPluginMetadata",
      "Identity.GetPluginCapabilities",
      "Identity.Probe",
      "Health.Check",
    ]);
  });

  it("leave out what a WAL service lacks, so that nothing is acknowledged by mistake", () => {
    const labels = buildHandlers({ name: "a", version: "1" }, { wal: { restore: () => undefined } }).map(
      ({ label }) => label,
    );
    expect(labels.filter((label) => label.startsWith("WAL."))).toEqual(["WAL.GetCapabilities", "WAL.Restore"]);
  });
});
