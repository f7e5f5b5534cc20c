import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildPrimaryConninfo } from "../../../src/postgres/conninfo.ts";
import { buildCustomConf } from "../../../src/postgres/custom-conf.ts";
import { buildHbaConf } from "../../../src/postgres/hba-conf.ts";
import { buildIdentConf } from "../../../src/postgres/ident-conf.ts";
import { buildOverrideConf } from "../../../src/postgres/override-conf.ts";
import { slotNameOf } from "../../../src/postgres/slots.ts";
import { aCluster } from "../../unit/postgres/a-cluster.ts";

function golden(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8");
}

const cluster = aCluster({
  postgresql: {
    parameters: { max_connections: "120", work_mem: "8MB", archive_mode: "off", log_directory: "/elsewhere" },
    synchronous: { method: "any", number: 1, dataDurability: "required" },
  },
});

describe("custom.conf", () => {
  it("of a running instance is byte for byte as expected", () => {
    const { text, sha256 } = buildCustomConf(cluster, { major: 17, mode: "run" });
    expect(text).toBe(golden("custom-17-three-instances.conf"));
    expect(sha256).toBe("4f1fcaa18546b7d077bca9f847b12ad1f3c8d052220cc31ef405753e06bc9d36");
  });

  it("with two instances has the hash that the original reported", () => {
    const two = aCluster(cluster.spec, {
      instanceNames: ["obs-1", "obs-2"],
      instancesStatus: { healthy: ["obs-1", "obs-2"] },
    });
    expect(buildCustomConf(two, { major: 17, mode: "run" }).sha256).toBe(
      "562e185c181fd4f54ca31a3caefebe33590d4d86cbf40b481478a24327932c4a",
    );
  });
});

describe("override.conf", () => {
  it("of a standby", () => {
    const primaryConninfo = buildPrimaryConninfo({ host: "obs-rw", applicationName: "obs-2" });
    const text = buildOverrideConf({ kind: "standby", primaryConninfo, slotName: slotNameOf("obs-2") });
    expect(text).toBe(golden("override-standby.conf"));
    const withoutSlot = buildOverrideConf({ kind: "standby", primaryConninfo });
    expect(withoutSlot).toBe(golden("override-standby.conf").replace(/^primary_slot_name.*\n/m, ""));
  });

  it("during an import, and after a restore", () => {
    expect(buildOverrideConf({ kind: "import" })).toBe(golden("override-import.conf"));
    expect(buildOverrideConf({ kind: "empty" })).toBe("");
  });
});

describe("access files", () => {
  it("pg_hba.conf with user rules, pod selectors and LDAP", () => {
    const selector = { matchLabels: { app: "web" } };
    const text = buildHbaConf({
      cluster: aCluster(
        {
          podSelectorRefs: [
            { name: "web", selector },
            { name: "nobody", selector },
          ],
          postgresql: {
            pg_hba: [
              // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference syntax of the API.
              "host app app ${podselector:web} scram-sha-256",
              // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference syntax of the API.
              "host app app ${podselector:unknown} md5",
              // biome-ignore lint/suspicious/noTemplateCurlyInString: the reference syntax of the API.
              "host app app ${podselector:nobody} md5",
              "host all all 10.0.0.0/8 reject",
            ],
            ldap: {
              server: "ldap.example",
              port: 636,
              scheme: "ldaps",
              tls: true,
              bindSearchAuth: {
                baseDN: "dc=example",
                bindDN: 'cn="quoted"',
                bindPassword: { name: "ldap", key: "password" },
                searchAttribute: "uid",
              },
            },
          },
        },
        {
          podSelectorRefs: [
            { name: "web", ips: ["10.1.2.3", "fd00::7"] },
            { name: "nobody", ips: [] },
          ],
        },
      ),
      major: 16,
      ldapBindPassword: "two\nlines",
    });
    expect(text).toBe(golden("pg_hba-16-ldap.conf"));
  });

  it("pg_ident.conf", () => {
    expect(buildIdentConf("postgres", ["mymap /^(.*)@example$ \\1"])).toBe(golden("pg_ident.conf"));
  });
});
