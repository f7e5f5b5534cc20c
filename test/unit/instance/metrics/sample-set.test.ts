import { describe, expect, it } from "vitest";
import { formatValue, type MetricFamily, SampleSet } from "../../../../src/instance/metrics/sample-set.ts";

const family: MetricFamily = { name: "cnpg_a", help: "what\nit \\ is", type: "gauge" };

describe("SampleSet", () => {
  it("writes sorted text with escapes and special numbers", () => {
    const samples = new SampleSet();
    samples.add({ name: "cnpg_b", help: "", type: "counter" }, {}, 1e21);
    samples.add(family, { z: "2", a: 'q"\\\n' }, Number.NaN);
    samples.add(family, {}, Number.NEGATIVE_INFINITY);
    expect(samples.render()).toBe(
      [
        "# HELP cnpg_a what\\nit \\\\ is",
        "# TYPE cnpg_a gauge",
        "cnpg_a -Inf",
        'cnpg_a{a="q\\"\\\\\\n",z="2"} NaN',
        "# HELP cnpg_b ",
        "# TYPE cnpg_b counter",
        "cnpg_b 1e+21",
        "",
      ].join("\n"),
    );
  });

  it("refuses what would make the answer invalid, and keeps the rest", () => {
    const samples = new SampleSet();
    expect(samples.add(family, { a: "1", b: "2" }, 1)).toBeUndefined();
    expect(samples.add(family, { b: "2", a: "1" }, 2)).toBe("duplicate");
    expect(samples.add({ ...family, type: "counter" }, {}, 3)).toBe("inconsistent");
    expect(samples.add({ ...family, name: "no spaces" }, {}, 4)).toBe("invalidName");
    expect(samples.add(family, { "no-dash": "" }, 5)).toBe("invalidName");
    expect(samples.render().match(/^cnpg_a.*$/gm)).toEqual(['cnpg_a{a="1",b="2"} 1']);
  });

  it("tells what it refused of another set", () => {
    const [one, two] = [new SampleSet(), new SampleSet()];
    one.add(family, {}, 1);
    two.add(family, {}, 2);
    two.add(family, { a: "1" }, 3);
    const refused: string[] = [];
    one.merge(two, (name, refusal) => refused.push(`${name} ${refusal}`));
    expect(refused).toEqual(["cnpg_a duplicate"]);
    expect(one.render()).toContain('cnpg_a 1\ncnpg_a{a="1"} 3\n');
  });

  it("writes a histogram as one series", () => {
    const samples = new SampleSet();
    const histogram = { ...family, type: "histogram" } as const;
    const value = { buckets: [{ upTo: 0.5, count: 1 }], sum: 2, count: 3 };
    expect(samples.addHistogram(histogram, { x: "y" }, value)).toBeUndefined();
    expect(samples.addHistogram(histogram, { x: "y" }, value)).toBe("duplicate");
    expect(samples.render().split("\n").slice(2)).toEqual([
      'cnpg_a_bucket{le="0.5",x="y"} 1',
      'cnpg_a_bucket{le="+Inf",x="y"} 3',
      'cnpg_a_sum{x="y"} 2',
      'cnpg_a_count{x="y"} 3',
      "",
    ]);
  });
});

describe("formatValue", () => {
  it.each([
    [0, "0"],
    [-1, "-1"],
    [999_999, "999999"],
    [999_999.5, "999999.5"],
    [1_000_000, "1e+06"],
    [-16_777_216, "-1.6777216e+07"],
    [1_795_996_681.684828, "1.795996681684828e+09"],
    [1e100, "1e+100"],
    [0.0001, "0.0001"],
    [0.00001234, "1.234e-05"],
  ])("writes %d as %s", (value, text) => {
    expect(formatValue(value)).toBe(text);
  });
});
