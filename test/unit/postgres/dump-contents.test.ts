import { expect, test } from "vitest";
import { dumpedExtensions } from "../../../src/postgres/dump-contents.ts";

test("the extensions of a dump are those that it makes, and not what it says of them or has in their name", () => {
  const list = `;
; Archive created at 2026-11-30 10:00:00 UTC
;     TOC Entries: 9
;
6; 2615 16391 SCHEMA - code alice
2; 3079 16392 EXTENSION - citext 
3381; 0 0 COMMENT - EXTENSION citext 
3; 3079 16500 EXTENSION - uuid-ossp 
210; 1255 16497 FUNCTION code stamp() alice
211; 1259 16498 TABLE code EXTENSION alice`;
  expect(dumpedExtensions(list.split("\n"))).toEqual(["citext", "uuid-ossp"]);
  expect(dumpedExtensions([])).toEqual([]);
});
