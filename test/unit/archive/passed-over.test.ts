import { expect, test } from "vitest";
import { warnOfArguments } from "../../../src/archive/passed-over.ts";
import { captureLogs } from "../../support/log-capture.ts";

test("arguments without a meaning are named in a warning, and others in none", () => {
  const logs = captureLogs();
  const destinationPath = "s3://b/";
  warnOfArguments({ destinationPath, wal: { archiveAdditionalCommandArgs: ["--read-timeout=5"] } }, logs.logger);
  expect(logs.records).toEqual([]);
  const wal = { archiveAdditionalCommandArgs: ["--made-up=1"] };
  warnOfArguments({ destinationPath, wal, data: { additionalCommandArgs: ["--sse-customer-key", "x"] } }, logs.logger);
  expect(logs.messages("warning")).toHaveLength(1);
  expect(logs.records[0]?.fields["arguments"]).toEqual(expect.arrayContaining(["--made-up=1", "--sse-customer-key"]));
});
