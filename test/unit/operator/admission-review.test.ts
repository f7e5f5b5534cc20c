import { describe, expect, it } from "vitest";
import { answerReview, type ReviewOutcome } from "../../../src/operator/admission-review.ts";

const review = (object: unknown) => JSON.stringify({ request: { uid: "u1", operation: "CREATE", object } });

function answer(outcome: ReviewOutcome, object: unknown = { a: 1 }) {
  const { status, body } = answerReview(review(object), () => outcome);
  return { status, response: (JSON.parse(body) as { response: Record<string, unknown> }).response };
}

describe("an admission review", () => {
  it("is allowed with its warnings", () => {
    expect(answer({ kind: "allowed", warnings: ["careful"] })).toEqual({
      status: 200,
      response: { uid: "u1", allowed: true, warnings: ["careful"] },
    });
  });

  it("carries changes as a JSON patch, and none when there are none", () => {
    const { response } = answer({ kind: "changed", object: { a: 1, b: 2 } });
    expect(JSON.parse(Buffer.from(String(response["patch"]), "base64").toString("utf8"))).toEqual([
      { op: "add", path: "/b", value: 2 },
    ]);
    expect(answer({ kind: "changed", object: { a: 1 } }).response).toEqual({ uid: "u1", allowed: true });
  });

  it("is denied with code, reason and message", () => {
    const { response } = answer({ kind: "denied", message: "no", code: 422, reason: "Invalid" });
    expect(response).toEqual({
      uid: "u1",
      allowed: false,
      status: { status: "Failure", message: "no", reason: "Invalid", code: 422 },
    });
  });

  it.each(["", "{", "{}", '{"request":{}}'])("that cannot be read (%j) is the caller's fault", (text) => {
    expect(answerReview(text, () => ({ kind: "allowed" })).status).toBe(400);
  });
});
