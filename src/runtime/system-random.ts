import { randomBytes } from "node:crypto";
import type { Random } from "../ports/clock.ts";

/** Random values of the operating system; `float` is for jitter only. */
export const systemRandom: Random = {
  bytes: (length) => randomBytes(length),
  float: () => Math.random(),
};
