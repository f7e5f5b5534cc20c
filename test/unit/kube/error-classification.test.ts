import { describe, expect, it } from "vitest";
import {
  errorFromAnswer,
  errorFromFailure,
  errorFromWatchStatus,
  isStaleConnection,
} from "../../../src/kube/error-classification.ts";

const read = { what: "get pods ns/a", write: false };
const write = { what: "patch pods ns/a", write: true };
const status = (reason: string, details: object = {}) =>
  JSON.stringify({ kind: "Status", reason, message: `it is ${reason}`, details });

describe("errorFromAnswer", () => {
  it.each([
    [404, status("NotFound", { name: "a", kind: "pods" }), "notFound"],
    [404, status("NotFound", {}), "other"],
    [404, "404 page not found", "other"],
    [404, "<html>proxy</html>", "other"],
    [409, status("Conflict"), "conflict"],
    [409, status("AlreadyExists"), "alreadyExists"],
    [410, status("Expired"), "gone"],
    [400, status("BadRequest"), "invalid"],
    [422, status("Invalid"), "invalid"],
    [401, status("Unauthorized"), "forbidden"],
    [403, status("Forbidden"), "forbidden"],
    [429, status("TooManyRequests"), "unavailable"],
    [500, "", "unavailable"],
    [503, "no backend", "unavailable"],
    [418, "", "other"],
  ])("%i %s is %s", (code, body, kind) => {
    const error = errorFromAnswer(read, code, body);
    expect(error).toMatchObject({ kind, status: code, outcomeUnknown: false });
    expect(error.message).toContain("get pods ns/a");
  });

  it("tells a namespace that is being deleted from what somebody may still allow", () => {
    const causes = [{ reason: "NamespaceTerminating", field: "metadata.namespace" }];
    const refused = (details: object) => errorFromAnswer(write, 403, status("Forbidden", details)).namespaceTerminating;
    expect(refused({ name: "a", kind: "pods", causes })).toBe(true);
    expect(refused({ causes: [{ reason: "FieldValueInvalid" }] })).toBe(false);
    expect(refused({})).toBe(false);
    expect(errorFromAnswer(write, 403, "NamespaceTerminating").namespaceTerminating).toBe(false);
  });

  it("leaves the outcome of a write open only when the server may have carried it out", () => {
    expect(errorFromAnswer(write, 500, "").outcomeUnknown).toBe(true);
    expect(errorFromAnswer(write, 504, "").outcomeUnknown).toBe(true);
    expect(errorFromAnswer(write, 429, "").outcomeUnknown).toBe(false);
    expect(errorFromAnswer(write, 409, status("Conflict")).outcomeUnknown).toBe(false);
  });

  it("takes the wish to be left alone from the header or the body", () => {
    expect(errorFromAnswer(read, 429, "", { retryAfter: "7" }).retryAfterMs).toBe(7000);
    expect(errorFromAnswer(read, 429, status("TooManyRequests", { retryAfterSeconds: 3 })).retryAfterMs).toBe(3000);
    expect(errorFromAnswer(read, 429, "", { retryAfter: "soon" }).retryAfterMs).toBeUndefined();
  });
});

describe("errorFromWatchStatus", () => {
  it("sees 410 inside a watch that began well", () => {
    expect(errorFromWatchStatus(read, { code: 410, reason: "Expired", message: "too old" })).toMatchObject({
      kind: "gone",
      status: 410,
    });
    expect(errorFromWatchStatus(read, {})).toMatchObject({ kind: "unavailable", status: 500 });
  });
});

describe("errorFromFailure", () => {
  const failure = (code: string) => Object.assign(new Error("failed"), { code });
  it.each([
    ["ECONNREFUSED", false],
    ["ENOTFOUND", false],
    ["EAI_AGAIN", false],
    ["UND_ERR_CONNECT_TIMEOUT", false],
    ["ERR_TLS_CERT_ALTNAME_INVALID", false],
    ["ECONNRESET", true],
    ["UND_ERR_SOCKET", true],
    ["UND_ERR_ABORTED", true],
    ["SOMETHING_NEW", true],
  ])("a write that fails with %s leaves the outcome open: %s", (code, open) => {
    expect(errorFromFailure(write, failure(code))).toMatchObject({
      kind: "unavailable",
      status: 0,
      outcomeUnknown: open,
    });
    expect(errorFromFailure(read, failure(code)).outcomeUnknown).toBe(false);
  });

  it("looks along causes and into aggregates, names the time-out, and keeps an error that is classified already", () => {
    const wrapped = new Error("fetch failed", { cause: new AggregateError([failure("ECONNREFUSED")]) });
    expect(errorFromFailure(write, wrapped).outcomeUnknown).toBe(false);
    expect(errorFromFailure(read, new Error("aborted"), 30_000).message).toBe(
      "get pods ns/a: no answer within 30000 ms",
    );
    const known = errorFromAnswer(read, 500, "");
    expect(errorFromFailure(read, known)).toBe(known);
  });

  it("knows the signs of a connection that was closed while idle", () => {
    expect(isStaleConnection(failure("UND_ERR_SOCKET"))).toBe(true);
    expect(isStaleConnection(failure("ECONNREFUSED"))).toBe(false);
    expect(isStaleConnection(undefined)).toBe(false);
  });
});
