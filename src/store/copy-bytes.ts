/** Bytes from which on the engine's own copy is worth its call. */
const longCopy = 96;

/** Copies between two arrays, of which most are asked for a few bytes. */
export function copyFrom(
  from: Uint8Array,
  fromView: DataView,
  at: number,
  out: Uint8Array,
  outView: DataView,
  to: number,
  length: number,
): void {
  if (length >= longCopy) {
    out.set(from.subarray(at, at + length), to);
    return;
  }
  let done = 0;
  for (; done + 4 <= length; done += 4) outView.setInt32(to + done, fromView.getInt32(at + done, true), true);
  for (; done < length; done++) out[to + done] = from[at + done] as number;
}

/** Repeats what is `offset` bytes before. A repetition may reach into itself: then its bytes come one after another. */
export function copyWithin(out: Uint8Array, view: DataView, to: number, offset: number, length: number): void {
  if (length >= longCopy && offset >= length) {
    out.copyWithin(to, to - offset, to - offset + length);
    return;
  }
  if (offset === 1 && length >= 16) {
    out.fill(out[to - 1] as number, to, to + length);
    return;
  }
  let done = 0;
  if (offset >= 4) {
    for (; done + 4 <= length; done += 4) view.setInt32(to + done, view.getInt32(to + done - offset, true), true);
  }
  for (; done < length; done++) out[to + done] = out[to + done - offset] as number;
}
