import { describe, expect, test } from "vitest";
import { describeDataDamage, type SessionRefusal } from "../../../../src/plan/instance/data-damage.ts";

const refusal = (code: string, message: string, detail?: string): SessionRefusal => ({ code, message, detail });

describe("describeDataDamage", () => {
  test.each<[string, SessionRefusal]>([
    ["a folder that is no database's", refusal("22023", 'connecting: "base/5" is not a valid data directory')],
    ["in another language", refusal("22023", "»base/5« ist kein gültiges Datenverzeichnis")],
    ["a folder that is gone", refusal("3D000", "no such database", 'The subdirectory "base/5" is missing.')],
    ["a file that is gone", refusal("58P01", 'could not open file "base/5/pg_filenode.map": No such file')],
    ["a file of all databases", refusal("58P01", 'could not open file "global/pg_filenode.map": No such file')],
    ["a disk that gives errors", refusal("58030", 'could not read file "base/5/1259": Input/output error')],
    ["broken content", refusal("XX001", "invalid page in block 0 of relation base/5/1259")],
  ])("%s", (_name, given) => {
    expect(describeDataDamage(given)).toContain(given.detail ?? given.message);
  });

  test.each<[string, SessionRefusal]>([
    ["a database that is not there", refusal("3D000", 'database "postgres" does not exist')],
    ["a server that starts", refusal("57P03", "the database system is starting up")],
    ["a server that is full", refusal("53300", "sorry, too many clients already")],
    ["no handles", refusal("53000", 'could not open file "base/5/PG_VERSION": Too many open files in system')],
    ["no room", refusal("53100", 'could not extend file "base/5/1259": No space left on device')],
    ["a setting that does not fit", refusal("22023", 'invalid value for parameter "lock_timeout": "x"')],
    ["a folder of the user's", refusal("58P01", 'could not access file "/extensions/base/5.so": No such file')],
    ["no answer", refusal("ETIMEDOUT", "timeout expired")],
    ["anything else", {}],
  ])("none: %s", (_name, given) => {
    expect(describeDataDamage(given)).toBeUndefined();
  });
});
