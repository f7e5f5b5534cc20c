import { describe, expect, it } from "vitest";
import {
  buildExternalConninfo,
  buildPgpass,
  buildPrimaryConninfo,
  findExternalCluster,
  parseConninfo,
  redactConninfo,
} from "../../../src/postgres/conninfo.ts";
import { buildHbaConf, minimalHbaConf } from "../../../src/postgres/hba-conf.ts";
import { buildIdentConf } from "../../../src/postgres/ident-conf.ts";
import { quoteIdentifier, quoteLiteral } from "../../../src/postgres/identifiers.ts";
import { sanitizeSlotName, slotNameOf } from "../../../src/postgres/slots.ts";
import { aCluster } from "./a-cluster.ts";

const server = {
  name: "origin",
  connectionParameters: { user: "rep", host: "db:1", dbname: "it's" },
  password: { name: "pw", key: "password" },
  sslKey: { name: "tls", key: "tls.key" },
  sslCert: { name: "tls", key: "tls.crt" },
  sslRootCert: { name: "ca", key: "ca.crt" },
};

describe("connection texts", () => {
  it("of a standby take the time-out from the environment and quote it", () => {
    const text = buildPrimaryConninfo({ host: "c-rw", applicationName: "c-2", tcpUserTimeout: "1'0" });
    expect(text.endsWith(" dbname=postgres tcp_user_timeout='1\\'0'")).toBe(true);
    expect(buildPrimaryConninfo({ host: "c-rw", applicationName: "c-2", tcpUserTimeout: "" })).toContain("='5000'");
  });

  it("of an external cluster name the files of its Secrets", () => {
    const text = buildExternalConninfo(server);
    expect(text).toBe(
      "dbname='it\\'s' host='db:1' passfile='/controller/external/origin/pgpass' " +
        "sslcert='/controller/external/origin/tls_tls.crt' sslkey='/controller/external/origin/tls_tls.key' " +
        "sslrootcert='/controller/external/origin/ca_ca.crt' user='rep'",
    );
    expect(parseConninfo(text)?.["dbname"]).toBe("it's");
    expect(parseConninfo(buildExternalConninfo(server, { dbname: "", application_name: "x" }))).toMatchObject({
      application_name: "x",
    });
    expect(buildExternalConninfo(server, { dbname: "" })).not.toContain("dbname");
  });

  it("have a pgpass line beside them", () => {
    expect(buildPgpass(server, "p:a\\ss")).toBe("db\\:1:*:*:rep:p\\:a\\\\ss\n");
    expect(buildPgpass({ name: "x", connectionParameters: { port: "1" } }, "p")).toBe("*:1:*:*:p\n");
  });

  it("are found by name", () => {
    const cluster = aCluster({ externalClusters: [server] });
    expect(findExternalCluster(cluster, "origin")).toBe(server);
    expect(findExternalCluster(cluster, "other")).toBeUndefined();
  });

  it.each(["postgresql://host/db", "host", "host='open", "host='a'b=c"])("refuse to read %j", (text) => {
    expect(parseConninfo(text)).toBeUndefined();
  });

  it("lose their passwords before they are logged", () => {
    expect(redactConninfo("host=a password='s e\\'c' user=b")).toBe("host=a password=*** user=b");
    expect(redactConninfo("host=a password=secret")).toBe("host=a password=***");
    expect(redactConninfo("postgresql://u:secret@h/db")).toBe("postgresql://u:***@h/db");
  });
});

describe("pg_hba.conf", () => {
  const lines = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

  it("has our rules before and the default after those of the user", () => {
    const cluster = aCluster({ postgresql: { pg_hba: ["host all all all reject"] } });
    const rules = lines(buildHbaConf({ cluster, major: 17 }));
    expect(rules.indexOf("host all all all reject")).toBe(5);
    expect(rules.at(-1)).toBe("host all all all scram-sha-256");
    expect(lines(buildHbaConf({ cluster, major: 13 })).at(-1)).toBe("host all all all md5");
  });

  it("expands only the first reference in a line", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference syntax of the API.
    const rule = "host all all ${podselector:a} ldap x=${podselector:a}";
    const cluster = aCluster(
      { postgresql: { pg_hba: [rule] } },
      { podSelectorRefs: [{ name: "a", ips: ["10.0.0.1"] }] },
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference syntax of the API.
    expect(lines(buildHbaConf({ cluster, major: 17 }))).toContain("host all all 10.0.0.1/32 ldap x=${podselector:a}");
  });

  it("binds to LDAP as the user itself", () => {
    const ldap = { server: "s", bindAsAuth: { prefix: "cn=", suffix: ",dc=x" } };
    const cluster = aCluster({ postgresql: { ldap } });
    expect(lines(buildHbaConf({ cluster, major: 17 }))).toContain(
      'host all all 0.0.0.0/0 ldap ldapserver="s" ldapprefix="cn=" ldapsuffix=",dc=x"',
    );
  });

  it("is not made without the LDAP password it needs", () => {
    const bindSearchAuth = { baseDN: "b", bindDN: "d", bindPassword: { name: "secret", key: "k" } };
    const cluster = aCluster({ postgresql: { ldap: { server: "s", bindSearchAuth } } });
    expect(() => buildHbaConf({ cluster, major: 17 })).toThrow(/Secret "secret" key "k"/);
  });

  it("of a recovery job lets only the socket in", () => {
    expect(minimalHbaConf).toBe("local all all peer map=local\n");
  });
});

describe("names", () => {
  it.each([
    ["c-1", undefined, "_cnpg_c_1"],
    ["My.Cluster--12", undefined, "_cnpg_my_cluster_12"],
    ["c-1", "pre_", "pre_c_1"],
  ])("slot of %s with prefix %s", (instance, prefix, expected) => {
    expect(slotNameOf(instance, prefix)).toBe(expected);
    expect(sanitizeSlotName(expected)).toBe(expected);
  });

  it("quotes identifiers and literals", () => {
    expect(quoteIdentifier('a"b')).toBe('"a""b"');
    expect(quoteLiteral("it's")).toBe("'it''s'");
    expect(quoteLiteral("a\\b")).toBe(" E'a\\\\b'");
  });

  it("maps an unknown system user to nobody", () => {
    expect(buildIdentConf("/")).toContain("local / postgres");
  });
});
