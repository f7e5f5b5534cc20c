import { describe, expect, it } from "vitest";
import { parseStartOptions, parseStopOptions } from "../../../local/options.ts";
import { UserError } from "../../../local/terminal/user-error.ts";

describe("options of npm start", () => {
  it("default to the local cluster with the quickstart", () => {
    expect(parseStartOptions([])).toEqual({
      help: false,
      context: undefined,
      registry: undefined,
      quickstart: true,
      nodes: undefined,
    });
  });

  it("take the user's cluster and registry, without a slash at the end", () => {
    expect(parseStartOptions(["--context", "prod", "--registry=host:5000/team/", "--no-quickstart"])).toEqual({
      help: false,
      context: "prod",
      registry: "host:5000/team",
      quickstart: false,
      nodes: undefined,
    });
  });

  it.each([
    [["--context", "prod"], /--registry/],
    [["--registry", "host"], /--context/],
    [["--context", "prod", "--registry", ""], /HOST\[:PORT\]\[\/PATH\]/],
    [["--context", "prod", "--registry", "https://host/team"], /without a scheme.*https:\/\/host\/team/],
    [["--contxt", "prod"], /--contxt.*--help/],
    [["--nodes", "0"], /1 to 9, not 0/],
    [["--nodes=many"], /1 to 9, not many/],
    [["extra"], /extra.*--help/],
    [["--context"], /--context.*--help/],
  ])("refuse %j in one line", (args, message) => {
    expect(() => parseStartOptions(args)).toThrow(UserError);
    expect(() => parseStartOptions(args)).toThrow(message);
  });

  it("show help whatever else is missing", () => {
    expect(parseStartOptions(["--help", "--context", "prod"]).help).toBe(true);
  });
});

describe("nodes", () => {
  it("are as many as asked for", () => {
    expect(parseStartOptions(["--nodes", "3"]).nodes).toBe(3);
  });
});

describe("options of npm stop", () => {
  it("keep data unless told otherwise", () => {
    expect(parseStopOptions([])).toEqual({ help: false, purge: false });
    expect(parseStopOptions(["--purge"])).toEqual({ help: false, purge: true });
    expect(() => parseStopOptions(["--all"])).toThrow(/--all.*--help/);
  });
});
