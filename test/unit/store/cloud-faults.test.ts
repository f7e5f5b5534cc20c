import { createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { classifyAzureFault, readAzureFault } from "../../../src/store/azure/azure-faults.ts";
import { parseListing } from "../../../src/store/azure/azure-listing.ts";
import { signByKey } from "../../../src/store/azure/azure-signature.ts";
import { classifyGcsFault, readGcsFault } from "../../../src/store/gcs/gcs-faults.ts";

const answer = (status: number, headers = {}) => ({ status, headers, body: {} as IncomingMessage });
const proxy = "<html>a proxy</html>";

describe("azure", () => {
  test.each([
    [404, "BlobNotFound", "notFound"],
    [404, "ContainerNotFound", "bucketMissing"],
    [404, undefined, "unavailable"],
    [403, "AuthenticationFailed", "denied"],
    [403, "AuthorizationPermissionMismatch", "denied"],
    [403, undefined, "denied"],
    [401, "InvalidAuthenticationInfo", "denied"],
    [409, "BlobAlreadyExists", "conflict"],
    [412, "ConditionNotMet", "conflict"],
    [403, "UnauthorizedBlobOverwrite", "conflict"],
    [400, "Md5Mismatch", "corrupt"],
    [400, "InvalidHeaderValue", "invalid"],
    [409, "BlobArchived", "invalid"],
    [409, "ContainerBeingDeleted", "unavailable"],
    [500, "InternalError", "unavailable"],
    [503, "ServerBusy", "unavailable"],
    [503, undefined, "unavailable"],
  ])("status %i with code %s is %s, named by a header or by XML", (status, code, kind) => {
    const xml =
      code === undefined ? proxy : `<?xml?><Error><Code>${code}</Code><Message>a &amp; b\nTime</Message></Error>`;
    const byBody = readAzureFault(answer(status), xml);
    expect(classifyAzureFault(byBody)).toBe(kind);
    if (code === undefined) return;
    expect(byBody).toEqual({ status, code, message: "a & b" });
    const byHeader = readAzureFault(answer(status, { "x-ms-error-code": code, "x-ms-request-id": "7" }), "");
    expect(byHeader).toEqual({ status, code, message: "(request 7)" });
    expect(classifyAzureFault(byHeader)).toBe(kind);
  });

  test("a listing is read with names that XML has to write in another way", () => {
    const xml =
      '<?xml version="1.0"?><EnumerationResults ContainerName="c"><Blobs>' +
      "<Blob><Name>a &amp; b&#xE9;</Name><Properties><Last-Modified>Fri, 01 May 2026 10:11:12 GMT</Last-Modified><Content-Length>7</Content-Length></Properties></Blob>" +
      '<BlobPrefix><Name>a/</Name></BlobPrefix><Blob><Name Encoded="true">x%01y</Name><Properties><Content-Length>0</Content-Length></Properties></Blob>' +
      "</Blobs><NextMarker>m&lt;1</NextMarker></EnumerationResults>";
    expect(parseListing(xml)).toEqual({
      objects: [
        { key: "a & bé", size: 7, modifiedMs: Date.UTC(2026, 4, 1, 10, 11, 12) },
        { key: "x\u0001y", size: 0, modifiedMs: undefined },
      ],
      prefixes: ["a/"],
      marker: "m<1",
    });
    expect(parseListing(proxy)).toBeUndefined();
  });

  test("a signature covers headers by their place, own headers and the query in order", () => {
    const request = {
      method: "PUT",
      origin: new URL("https://a.blob.core.windows.net"),
      path: "/c/k%20ey?comp=block&blockid=QQ%3D%3D",
      headers: { "x-ms-version": "2021-12-02", "content-md5": "m", "x-ms-date": "d" },
      body: Buffer.from("x"),
    };
    const signed = signByKey(request, "a", Buffer.from("key").toString("base64"));
    const text =
      "PUT\n\n\n1\nm\n\n\n\n\n\n\n\nx-ms-date:d\nx-ms-version:2021-12-02\n/a/c/k%20ey\nblockid:QQ==\ncomp:block";
    const expected = createHmac("sha256", "key").update(text).digest("base64");
    expect(signed.headers["authorization"]).toBe(`SharedKey a:${expected}`);
  });
});

describe("gcs", () => {
  const json = (code: number, message: string, reason?: string) =>
    JSON.stringify({ error: { code, message, errors: reason === undefined ? [] : [{ reason }] } });

  test.each([
    [404, json(404, "No such object: b/k", "notFound"), "notFound"],
    [404, "No such object: b/k", "notFound"],
    [404, json(404, "The specified bucket does not exist.", "notFound"), "bucketMissing"],
    [404, json(404, "Not Found", "notFound"), "unavailable"],
    [404, proxy, "unavailable"],
    [401, json(401, "Invalid Credentials", "authError"), "denied"],
    [403, json(403, "no access", "forbidden"), "denied"],
    [403, json(403, "slow down", "rateLimitExceeded"), "unavailable"],
    [412, json(412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet"), "conflict"],
    [409, json(409, "You already own this bucket.", "conflict"), "conflict"],
    [400, json(400, 'Provided MD5 hash "x" doesn\'t match calculated MD5 hash "y".', "invalid"), "corrupt"],
    [400, json(400, "Required", "required"), "invalid"],
    [410, proxy, "unavailable"],
    [429, json(429, "too many", "rateLimitExceeded"), "unavailable"],
    [503, json(503, "Backend Error", "backendError"), "unavailable"],
    [503, proxy, "unavailable"],
  ])("status %i with %s is %s", (status, text, kind) => {
    expect(classifyGcsFault(readGcsFault(answer(status), text))).toBe(kind);
  });
});
