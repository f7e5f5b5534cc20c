import { describe, expect, test } from "vitest";
import { formatFilter } from "../../chaos/packet-filter.ts";

describe("formatFilter", () => {
  test("drops one direction only, of what passes through and of what the node sends itself", () => {
    expect(formatFilter([{ from: ["10.244.1.2"], to: ["10.244.2.2", "10.244.3.2"] }]).split("; ")).toEqual([
      "add table inet cnpg_ts_chaos",
      "add chain inet cnpg_ts_chaos forward { type filter hook forward priority 0",
      "}",
      "add chain inet cnpg_ts_chaos output { type filter hook output priority 0",
      "}",
      "add rule inet cnpg_ts_chaos forward ip saddr { 10.244.1.2 } ip daddr { 10.244.2.2, 10.244.3.2 } drop",
      "add rule inet cnpg_ts_chaos output ip saddr { 10.244.1.2 } ip daddr { 10.244.2.2, 10.244.3.2 } drop",
    ]);
  });

  test("matches a port of an address", () => {
    expect(formatFilter([{ to: ["10.213.0.1"], port: 6443 }])).toContain(
      "forward ip daddr { 10.213.0.1 } tcp dport 6443 drop",
    );
  });

  test("makes no rule that drops everything", () => {
    expect(() => formatFilter([{}])).toThrow("every packet");
    expect(() => formatFilter([{ from: [], to: ["10.244.1.2"] }])).toThrow("no address to match as saddr");
  });
});
