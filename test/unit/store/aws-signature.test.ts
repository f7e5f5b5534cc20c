import { expect, test } from "vitest";
import { signAwsRequest } from "../../../src/store/gcs/aws-signature.ts";

// The keys, time and signatures of Amazon's own published cases.
const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const request = {
  url: new URL("https://example.amazonaws.com/"),
  region: "us-east-1",
  service: "service",
  nowMs: Date.parse("2015-08-30T12:36:00Z"),
};

test.each([
  ["GET", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
  ["POST", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
] as const)("a plain %s is signed as Amazon signs it", (method, signature) => {
  expect(signAwsRequest({ ...request, method }, keys)).toEqual({
    host: "example.amazonaws.com",
    "x-amz-date": "20150830T123600Z",
    authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
  });
});

test("further headers and a session's token are signed too", () => {
  const headers = { "x-goog-cloud-target-resource": "//iam/pool" };
  const signed = signAwsRequest({ ...request, method: "POST", headers }, { ...keys, sessionToken: "t" });
  expect(signed["x-amz-security-token"]).toBe("t");
  expect(signed["authorization"]).toContain(
    "SignedHeaders=host;x-amz-date;x-amz-security-token;x-goog-cloud-target-resource,",
  );
});
