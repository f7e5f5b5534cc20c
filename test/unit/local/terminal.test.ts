import { describe, expect, it } from "vitest";
import { step } from "../../../local/terminal/progress.ts";
import { renderTable } from "../../../local/terminal/table.ts";
import { describeFailure, UserError } from "../../../local/terminal/user-error.ts";

describe("a failure", () => {
  it("is its message alone", () => {
    expect(describeFailure(new UserError("Go is missing."))).toBe("Go is missing.");
    expect(describeFailure(new Error("kubectl failed"))).toBe("kubectl failed");
  });

  it("shows where it is when the mistake is ours", () => {
    expect(describeFailure(new TypeError("x is undefined"))).toContain("terminal.test.ts");
  });
});

describe("a step", () => {
  it("says what it does and about how long it takes, and stays quiet about a short one", async () => {
    const lines: string[] = [];
    const result = await step(
      (line) => lines.push(line),
      "Building",
      "about 1 minute",
      async () => 42,
    );
    expect(result).toBe(42);
    expect(lines).toEqual(["→ Building (about 1 minute)"]);
  });

  it("passes a failure on", async () => {
    const failing = step(
      () => {},
      "Building",
      "",
      () => Promise.reject(new Error("no space")),
    );
    await expect(failing).rejects.toThrow("no space");
  });
});

describe("a table", () => {
  it("is as wide as its widest cells, without spaces at the ends", () => {
    expect(renderTable(["A", "LONG"], [["wide cell", "x"]])).toEqual(["A          LONG", "wide cell  x"]);
  });
});
