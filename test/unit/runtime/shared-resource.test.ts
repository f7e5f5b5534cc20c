import { describe, expect, test } from "vitest";
import { SharedResource } from "../../../src/runtime/shared-resource.ts";

function setUp() {
  const log: string[] = [];
  const resource = new SharedResource<string>(async (value) => void log.push(`close ${value}`));
  const make = (value: string) => async () => {
    log.push(`make ${value}`);
    return value;
  };
  return { log, resource, make };
}

describe("a shared resource", () => {
  test("is made once, and anew when its fingerprint changes, never two at a time", async () => {
    const { log, resource, make } = setUp();
    await resource.use("1", make("a"), async (value) => void log.push(`use ${value}`));
    await resource.use("1", make("b"), async (value) => void log.push(`use ${value}`));
    await resource.use("2", make("c"), async (value) => void log.push(`use ${value}`));
    await resource.close();
    expect(log).toEqual(["make a", "use a", "use a", "close a", "make c", "use c", "close c"]);
  });

  test("goes only when its users have ended", async () => {
    const { log, resource, make } = setUp();
    let finish = () => {};
    const first = resource.use("1", make("a"), async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      log.push("used a");
    });
    await new Promise((resolve) => setImmediate(resolve));
    const second = resource.use("2", make("b"), async () => void log.push("used b"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(["make a"]);
    finish();
    await Promise.all([first, second]);
    expect(log).toEqual(["make a", "used a", "close a", "make b", "used b"]);
  });

  test("a failure to make it is the caller's, and the next one tries again", async () => {
    const { log, resource, make } = setUp();
    const fail = () => Promise.reject(new Error("no"));
    await expect(resource.use("1", fail, async () => undefined)).rejects.toThrow("no");
    expect(await resource.use("1", make("a"), async (value) => value)).toBe("a");
    await expect(resource.use("1", make("x"), () => Promise.reject(new Error("work")))).rejects.toThrow("work");
    await resource.close();
    expect(log).toEqual(["make a", "close a"]);
  });
});
