import { expect, it } from "vitest";
import type { ObservedCertificate } from "../../../../src/build/certificates.ts";
import { aHealthyCluster, now, plan } from "./fixtures.ts";

const secret = "mine";
const notAfter = now.getTime() + 3 * 86_400_000;
const ending: ObservedCertificate = { kind: "present", notBefore: 0, notAfter, dnsNames: [], hasKey: true };

/** The warnings of a pass at a minute of the hour, when the status knows the end of the user's authority or not. */
function warnings(minute: number, isKnown: boolean): string[] {
  const { cluster, observed } = aHealthyCluster({ certificates: { serverCASecret: secret } });
  const certificates = new Map([...observed.certificates, [secret, ending] as const]);
  const at = new Date(Math.floor(now.getTime() / 3_600_000) * 3_600_000 + minute * 60_000);
  const given = { ...observed, certificates };
  const known = isKnown ? plan(cluster, given, at).status : cluster.status;
  const { actions } = plan({ ...cluster, ...(known ? { status: known } : {}) }, given, at);
  return actions.flatMap((it) => (it.kind === "event" && it.event === "SecretIsExpiring" ? [it.message] : []));
}

it.each<[string, number, boolean, string[]]>([
  ["is told when it is news", 30, false, ["Checking expiring date of secret mine"]],
  ["is not told in every pass", 30, true, []],
  ["is told again once an hour", 1, true, ["Checking expiring date of secret mine"]],
])("the end of an authority of the user's %s", (_, minute, isKnown, expected) => {
  expect(warnings(minute, isKnown)).toEqual(expected);
});
