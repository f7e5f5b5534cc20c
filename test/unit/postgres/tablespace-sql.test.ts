import { expect, test } from "vitest";
import { changeTablespaceOwner, createTablespace } from "../../../src/postgres/tablespace-sql.ts";

test("names and location are quoted", () => {
  expect(createTablespace('a"b', "Owner", "/t/it's/data")).toBe(
    `CREATE TABLESPACE "a""b" OWNER "Owner" LOCATION '/t/it''s/data'`,
  );
  expect(changeTablespaceOwner('a"b', "Owner")).toBe(`ALTER TABLESPACE "a""b" OWNER TO "Owner"`);
});
