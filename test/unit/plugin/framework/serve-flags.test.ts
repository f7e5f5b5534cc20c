import { describe, expect, it } from "vitest";
import { parseServeFlags } from "../../../../src/plugin/framework/serve-flags.ts";

const tls = ["--server-address=:9090", "--server-cert=s.crt", "--server-key=s.key", "--client-cert", "c.crt"];

describe("the flags of a plugin program", () => {
  it("choose a socket or TCP", () => {
    expect(parseServeFlags([])).toEqual({ kind: "socket" });
    expect(parseServeFlags(["--plugin-path", "/p"])).toEqual({ kind: "socket", folder: "/p" });
    expect(parseServeFlags(tls)).toEqual({
      kind: "tls",
      address: ":9090",
      certificateFile: "s.crt",
      keyFile: "s.key",
      clientRootsFile: "c.crt",
    });
  });

  it("may say how much is told, which is heard and no more", () => {
    expect(parseServeFlags(["--debug=false", ...tls, "--debug"])).toEqual(parseServeFlags(tls));
  });

  it("never lead to TCP in plain text", () => {
    expect(() => parseServeFlags(["--server-address=:9090"])).toThrow(
      "--server-address without --server-cert, --server-key, --client-cert",
    );
    expect(() => parseServeFlags(tls.slice(1))).toThrow("without --server-address");
  });

  it("contradict each other", () => {
    expect(() => parseServeFlags([...tls, "--plugin-path=/p"])).toThrow("give one");
  });
});
