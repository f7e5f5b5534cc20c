import type { Schema } from "../../../src/schema/crd/structural-schema.ts";

/** A whole number or a text, such as a port number or a port name. */
export const intOrString: Schema = {
  anyOf: [{ type: "integer" }, { type: "string" }],
  "x-kubernetes-int-or-string": true,
};

const number = String.raw`(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))`;

/** An amount with an optional binary or decimal suffix or exponent, such as `500m`, `1Gi` or `3e9`. */
export const quantity: Schema = {
  ...intOrString,
  pattern: String.raw`^(\+|-)?${number}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?${number}))?$`,
};
