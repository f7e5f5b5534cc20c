import { describe, expect, it } from "vitest";
import { generateProto } from "../../../proto/generate.ts";

describe("the generated code of the protocol", () => {
  it("is what the .proto files give", async () => {
    expect(await generateProto({ check: true })).toEqual([]);
  });
});
