import { expect, test } from "vitest";
import { type ProfileRequest, parseProfileRequest } from "../../../src/runtime/profile-request.ts";

const tooLong = 'seconds is "601": it must be more than 0 and at most 600.';

test.each<[string, string, ProfileRequest | { status: number; message?: string }]>([
  ["GET", "/debug/pprof/", { kind: "index" }],
  ["GET", "/debug/pprof", { kind: "moved", location: "/debug/pprof/" }],
  ["GET", "/debug/pprof/profile", { kind: "cpu", seconds: 30 }],
  ["GET", "/debug/pprof/profile?seconds=5", { kind: "cpu", seconds: 5 }],
  ["GET", "/debug/pprof/profile?seconds=0.5", { kind: "cpu", seconds: 0.5 }],
  ["GET", "/debug/pprof/profile?seconds=0", { status: 400 }],
  ["GET", "/debug/pprof/profile?seconds=soon", { status: 400 }],
  ["GET", "/debug/pprof/profile?seconds=601", { status: 400, message: tooLong }],
  ["GET", "/debug/pprof/heap", { kind: "heap", collectFirst: false }],
  ["GET", "/debug/pprof/heap?gc=1", { kind: "heap", collectFirst: true }],
  ["GET", "/debug/pprof/heap?gc=0", { kind: "heap", collectFirst: false }],
  ["GET", "/debug/pprof/heap?seconds=5", { status: 400 }],
  ["POST", "/debug/pprof/profile", { status: 405 }],
  ["GET", "/debug/pprof/goroutine", { status: 404 }],
  ["GET", "/", { status: 404 }],
  ["GET", "//", { status: 404 }],
  ["OPTIONS", "*", { status: 404 }],
])("%s %s", (method, url, expected) => {
  expect(parseProfileRequest(method, url)).toMatchObject(expected);
});
