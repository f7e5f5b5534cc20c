const mostParts = 10_000;
const leastPartBytes = 5 * 1024 ** 2;
/** An archive's size may not exceed it, whatever is asked. */
const mostArchiveBytes = 1024 ** 4;
/**
 * A quarter of what Barman's tool takes: so all parts are of the least size, and memory does not grow with the database.
 * PostgreSQL's own files have 1 GiB, and an archive takes whole files, so twice this size is never reached.
 */
const defaultArchiveBytes = 24 * 1024 ** 3;
/** What a cluster may grow by while it is copied, beside doubling. */
const expectedMarginBytes = 4 * 1024 ** 3;
/** Bytes of parts that may be on their way at once. */
const mostBytesUnderWay = 48 * 1024 ** 2;

/** Sizes of what a base backup sends. */
export interface UploadSizes {
  archiveBytes: number;
  partBytes: number;
  /** Parts under way at once. */
  concurrency: number;
}

export interface UploadRequest {
  maxArchiveBytes?: number | undefined;
  minPartBytes?: number | undefined;
  jobs?: number | undefined;
  /** Bytes of all that is to be copied, about; parts need not be made for more than a multiple of it. */
  expectedBytes?: number | undefined;
}

/** Chooses part and archive sizes: an archive of twice its limit still fits into the parts that a store takes. */
export function chooseUploadSizes(request: UploadRequest = {}): UploadSizes {
  const archiveBytes = Math.min(request.maxArchiveBytes ?? defaultArchiveBytes, mostArchiveBytes);
  const expected = 2 * (request.expectedBytes ?? Number.POSITIVE_INFINITY) + expectedMarginBytes;
  const largest = Math.min(archiveBytes, expected);
  const partBytes = Math.max(2 * Math.floor(largest / mostParts), leastPartBytes, request.minPartBytes ?? 0);
  const fitting = Math.max(1, Math.floor(mostBytesUnderWay / partBytes));
  return { archiveBytes, partBytes, concurrency: Math.min(Math.max(1, request.jobs ?? 2), fitting) };
}
