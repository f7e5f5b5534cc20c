import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { logProcessWarnings } from "../../../src/runtime/process-warnings.ts";
import { captureLogs } from "../../support/log-capture.ts";

test("warnings of the runtime become records, and nothing else is printed", () => {
  const host = new EventEmitter();
  const printed: unknown[] = [];
  host.on("warning", (warning) => printed.push(warning));
  const { logger, records } = captureLogs();
  logProcessWarnings(logger, host);
  const warning = Object.assign(new Error("11 abort listeners"), { name: "MaxListenersExceededWarning" });
  host.emit("warning", warning);
  expect(printed).toEqual([]);
  expect(records).toEqual([
    { level: "warning", message: "The runtime warns", fields: { warning: warning.name, error: warning } },
  ]);
});
