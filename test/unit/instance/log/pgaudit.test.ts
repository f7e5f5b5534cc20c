import { describe, expect, it } from "vitest";
import { parseAuditRecord } from "../../../../src/instance/log/pgaudit.ts";

const base = { error_severity: "LOG", user_name: "app" };

describe("parseAuditRecord", () => {
  it("takes the audit entry out of the message", () => {
    const message = 'AUDIT: SESSION,1,1,READ,SELECT,,,"select ""a"", 1\nfrom t",<not logged>';
    expect(parseAuditRecord({ ...base, message })).toEqual({
      record: base,
      audit: {
        audit_type: "SESSION",
        statement_id: "1",
        substatement_id: "1",
        class: "READ",
        command: "SELECT",
        statement: 'select "a", 1\nfrom t',
        parameter: "<not logged>",
      },
    });
  });

  it("reads the row count of the longer form", () => {
    const message = "AUDIT: OBJECT,2,1,WRITE,INSERT,TABLE,public.t,insert into t values (1),<none>,1";
    expect(parseAuditRecord({ message })?.audit["rows"]).toBe("1");
  });

  it.each([
    "nothing",
    "AUDIT: SESSION,1,1",
    'AUDIT: SESSION,1,1,READ,SELECT,,,"open,<none>',
    "note AUDIT: SESSION,1,1,READ,SELECT,,,x,<none>",
  ])("leaves %j alone", (message) => {
    expect(parseAuditRecord({ ...base, message })).toBeUndefined();
  });
});
