import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { type HttpHandler, listenerOf, textAnswer } from "../../../src/instance/web/http-answer.ts";

/** Sends one request target through a listener and gives what the client would see. */
function ask(handler: HttpHandler, target: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    let status = 0;
    const response = {
      writeHead: (code: number) => {
        status = code;
      },
      end: (body: string) => resolve({ status, body }),
      destroy: () => resolve({ status: 0, body: "destroyed" }),
    };
    listenerOf(handler)({ url: target } as IncomingMessage, response as unknown as ServerResponse);
  });
}

const fine: HttpHandler = async (_request, url) => (url.pathname === "/" ? textAnswer(200, "OK") : undefined);

describe("listenerOf", () => {
  test.each(["//", "///", "http://[", "http://:99999/"])(
    "the target %s is refused and ends nothing",
    async (target) => {
      expect(await ask(fine, target)).toMatchObject({ status: 400 });
    },
  );
  test("a known path is answered, an unknown one is 404", async () => {
    expect(await ask(fine, "/")).toEqual({ status: 200, body: "OK" });
    expect(await ask(fine, "/else")).toMatchObject({ status: 404 });
  });
  test("a handler that throws, now or later, is a 500", async () => {
    const now: HttpHandler = () => {
      throw new Error("now");
    };
    const later: HttpHandler = async () => {
      throw new Error("later");
    };
    expect(await ask(now, "/")).toEqual({ status: 500, body: "now" });
    expect(await ask(later, "/")).toEqual({ status: 500, body: "later" });
  });
});
