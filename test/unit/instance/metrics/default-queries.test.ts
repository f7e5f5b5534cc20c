import { expect, test } from "vitest";
import { defaultMonitoringQueries } from "../../../../src/api/default-monitoring.ts";

/** What looks like a function or a relation and is grammar. */
const grammar = new Set("and as bit coalesce else exists extract from greatest in not or select then when".split(" "));
const statements = defaultMonitoringQueries.replaceAll(/'[^']*'/g, "''").replaceAll(/^ +- .*$/gm, "");

test("the default queries name each function and relation with its schema, so that no search path leads elsewhere", () => {
  const called = [...statements.matchAll(/(?<![\w.:])([a-z_]\w*)\s*\(/gi)].map(([, name = ""]) => name.toLowerCase());
  expect(called.filter((name) => !grammar.has(name))).toEqual([]);
  const relations = [...statements.matchAll(/(?<!epoch |DISTINCT )\b(?:FROM|JOIN)\s+([a-z_][\w.]*)/g)].map(
    ([, name]) => name,
  );
  expect(relations.length).toBeGreaterThan(12);
  expect(relations.filter((name) => !name?.startsWith("pg_catalog."))).toEqual([]);
});
