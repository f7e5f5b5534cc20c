import { expect, test } from "vitest";
import { findUserName, parsePodUid } from "../../../src/instance/identity.ts";
import { relocate } from "../../../src/instance/instance-paths.ts";
import { compileInstanceSettings } from "../../../src/instance/settings.ts";

function token(claims: unknown): string {
  return `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;
}

test.each([
  [token({ "kubernetes.io": { pod: { name: "c-1", uid: "u-1" } } }), "u-1"],
  [token({ "kubernetes.io": { pod: { uid: "" } } }), undefined],
  [token({ iss: "x" }), undefined],
  ["h.%%%.s", undefined],
  ["", undefined],
])("pod UID of a token %#", (text, expected) => {
  expect(parsePodUid(text)).toBe(expected);
});

test("the user's name is read from the text of passwd", () => {
  const passwd = "root:x:0:0::/root:/bin/sh\n# comment\npostgres:x:26:26:PG:/var/lib:/bin/sh\n";
  expect(findUserName(passwd, 26)).toBe("postgres");
  expect(findUserName(passwd, 2)).toBeUndefined();
  expect(findUserName("", 26)).toBeUndefined();
});

const environment = { CLUSTER_NAME: "c", POD_NAME: "c-1", NAMESPACE: "ns", PGDATA: "/data" };

test("settings come from the environment, flags come first", () => {
  const settings = compileInstanceSettings({ podName: "c-9", pgWal: "" }, environment);
  expect(settings).toMatchObject({
    podName: "c-9",
    namespace: "ns",
    clusterName: "c",
    pgData: "/data",
    pgWal: undefined,
    scratch: "/controller",
    postgresPort: 5432,
    statusPort: 8000,
    localPort: 8010,
    metricsPort: 9187,
    primaryHost: "c-rw",
    primaryPort: 5432,
    statusTls: false,
  });
});

test.each([
  ["CLUSTER_NAME", "--cluster-name"],
  ["POD_NAME", "--pod-name"],
  ["NAMESPACE", "--namespace"],
  ["PGDATA", "--pg-data"],
])("without %s the message names flag and variable", (variable, flag) => {
  const rest = Object.fromEntries(Object.entries(environment).filter(([name]) => name !== variable));
  expect(() => compileInstanceSettings({}, rest)).toThrow(`${flag} is missing: give the flag or set ${variable}`);
});

test("a port that is none is refused", () => {
  expect(() => compileInstanceSettings({}, { ...environment, PGPORT: "x" })).toThrow('"x" is not a port number');
});

test("paths move only when the scratch folder does", () => {
  const text = "archive_command = '/controller/manager wal-archive'";
  expect(relocate(compileInstanceSettings({}, environment), text)).toBe(text);
  const moved = compileInstanceSettings({}, { ...environment, CNPG_TS_ROOT: "/tmp/x" });
  expect(relocate(moved, text)).toBe("archive_command = '/tmp/x/manager wal-archive'");
});
