import { expect, test } from "vitest";
import { compileGoPattern } from "../../../src/postgres/go-pattern.ts";

test.each([
  ["^my_", "my_slot", "amy_"],
  ["my\\-slot", "my-slot", "my_slot"],
  ["(?i)^AB", "abc", "cab"],
  ["^(?P<first>a)b", "ab", "bb"],
  ["\\Aslot[[:digit:]]+\\z", "slot12", "slot12a"],
  ["^(?i:A)b$", "ab", "aB"],
])("%s matches %s and not %s", (pattern, yes, no) => {
  const compiled = compileGoPattern(pattern);
  expect([compiled?.test(yes), compiled?.test(no)]).toEqual([true, false]);
});

test.each(["(", "[", "a(?=b)", "(?<!a)b", "(a)\\1", "*a"])("%s is none", (pattern) => {
  expect(compileGoPattern(pattern)).toBeUndefined();
});
