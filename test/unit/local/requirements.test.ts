import { describe, expect, it } from "vitest";
import {
  type MachineFacts,
  missingRequirements,
  packagesFor,
  parseVersion,
} from "../../../local/install/requirements.ts";

const complete: MachineFacts = {
  platform: "linux",
  arch: "x64",
  uid: 0,
  node: "v20.20.2\n",
  npm: "10.8.2\n",
  go: "go1.26.8\n",
  gcc: "12\n",
  staticLibc: true,
  apt: true,
  missingCommands: ["runc"],
};

describe("what a machine lacks", () => {
  it("is nothing when apt can install the rest", () => {
    expect(missingRequirements(complete)).toEqual([]);
  });

  it.each<[string, Partial<MachineFacts>, RegExp]>([
    ["another system", { platform: "darwin" }, /Linux on x64 or arm64 .* darwin on x64/],
    ["another processor", { arch: "riscv64" }, /linux on riscv64/],
    ["no root", { uid: 1000 }, /as root.*sudo/],
    ["old Node", { node: "v18.19.0" }, /Node 20 or newer is needed \(found v18\.19\.0\): https:/],
    ["no Node", { node: undefined }, /Node 20 or newer is needed: https:/],
    ["no npm", { npm: undefined }, /npm is needed.*apt-get install npm/],
    ["Debian's Go", { go: "go1.19.8" }, /Go 1\.26 or newer is needed \(found go1\.19\.8\): https:\/\/go\.dev/],
    ["no Go", { go: undefined }, /Go 1\.26 or newer is needed: https:\/\/go\.dev/],
    ["no compiler", { gcc: undefined, staticLibc: false }, /gcc is needed: `apt-get install gcc libc6-dev`/],
    ["no static libc", { staticLibc: false }, /static C library: `apt-get install libc6-dev`/],
    ["no apt", { apt: false }, /apt is not here.*: runc\./],
  ])("is told in one line: %s", (_, change, line) => {
    const lines = missingRequirements({ ...complete, ...change });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(line);
    expect(lines[0]).not.toContain("\n");
  });

  it("does not ask for apt when it has nothing to install", () => {
    expect(missingRequirements({ ...complete, apt: false, missingCommands: [] })).toEqual([]);
  });

  it("accepts a Go of a later major version", () => {
    expect(missingRequirements({ ...complete, go: "go2.0" })).toEqual([]);
  });
});

describe("versions and packages", () => {
  it.each([
    ["go1.26.8", [1, 26, 8]],
    ["go1.27rc1", [1, 27, 0]],
    ["v24.22.3\n", [24, 22, 3]],
    ["unknown", undefined],
    [undefined, undefined],
  ])("reads %s", (text, version) => {
    expect(parseVersion(text)).toEqual(version);
  });

  it("names each package once", () => {
    expect(packagesFor(["unshare", "nsenter", "/usr/lib/cni/ptp"])).toEqual([
      "containernetworking-plugins",
      "util-linux",
    ]);
  });
});
