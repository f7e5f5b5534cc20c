import { describe, expect, test } from "vitest";
import { chooseNext } from "../../chaos/next-fault.ts";

const made = (...faults: string[]) => faults.map((fault) => ({ fault }));
const none = () => false;

describe("chooseNext", () => {
  test("takes the fault with the fewest runs, the first of several", () => {
    expect(chooseNext(["a", "b", "c"], made("a", "c"), none)).toBe("b");
    expect(chooseNext(["a", "b"], made(), none)).toBe("a");
  });

  test("stays with the cluster at hand among equals", () => {
    expect(chooseNext(["a", "b", "c"], made(), (name) => name === "c")).toBe("c");
    expect(chooseNext(["a", "b", "c"], made("c"), (name) => name === "c")).toBe("a");
  });
});
