// The Burrows-Wheeler transform of a block, by sorting its rotations with doubled lengths: every block takes about the same
// time, whatever it repeats.

/** Last bytes of the sorted rotations, and the place of the block itself among them. */
export function sortRotations(block: Uint8Array): { last: Uint8Array; origin: number } {
  const size = block.length;
  const order = sortedOrder(block);
  const last = new Uint8Array(size);
  for (let place = 0; place < size; place++) {
    const start = order[place] as number;
    last[place] = block[start === 0 ? size - 1 : start - 1] as number;
  }
  return { last, origin: order.indexOf(0) };
}

/** Starts of the rotations in their order. */
function sortedOrder(block: Uint8Array): Int32Array {
  const size = block.length;
  const order: Int32Array = new Int32Array(size);
  let classes: Int32Array = new Int32Array(size);
  const shifted: Int32Array = new Int32Array(size);
  let next: Int32Array = new Int32Array(size);
  const counts = new Int32Array(Math.max(65_536, size) + 1);
  // The first two bytes are sorted at once.
  for (let at = 0; at < size; at++) {
    classes[at] = ((block[at] as number) << 8) | (block[at + 1 === size ? 0 : at + 1] as number);
    shifted[at] = at;
  }
  sortByClass(shifted, classes, order, counts, 65_536);
  let number = renumber(order, classes, next, 0);
  [classes, next] = [next, classes];
  for (let length = 2; number < size && length < size; length *= 2) {
    // Sorted by their second halves already: each rotation stands `length` before one of the last order.
    for (let place = 0; place < size; place++) {
      const start = (order[place] as number) - length;
      shifted[place] = start < 0 ? start + size : start;
    }
    sortByClass(shifted, classes, order, counts, number);
    number = renumber(order, classes, next, length);
    [classes, next] = [next, classes];
  }
  return order;
}

function sortByClass(
  from: Int32Array,
  classes: Int32Array,
  to: Int32Array,
  counts: Int32Array,
  classCount: number,
): void {
  counts.fill(0, 0, classCount + 1);
  for (let at = 0; at < from.length; at++) {
    const slot = (classes[at] as number) + 1;
    counts[slot] = (counts[slot] as number) + 1;
  }
  for (let at = 1; at <= classCount; at++) counts[at] = (counts[at] as number) + (counts[at - 1] as number);
  for (let at = 0; at < from.length; at++) {
    const start = from[at] as number;
    const slot = classes[start] as number;
    const place = counts[slot] as number;
    counts[slot] = place + 1;
    to[place] = start;
  }
}

/** Gives rotations that are equal so far the same number, in their order; returns how many numbers there are. */
function renumber(order: Int32Array, classes: Int32Array, next: Int32Array, length: number): number {
  const size = order.length;
  let number = 0;
  let before = order[0] as number;
  next[before] = 0;
  for (let place = 1; place < size; place++) {
    const start = order[place] as number;
    if (classes[before] !== classes[start]) number++;
    else if (length > 0) {
      const [a, b] = [before + length, start + length];
      if (classes[a < size ? a : a - size] !== classes[b < size ? b : b - size]) number++;
    }
    next[start] = number;
    before = start;
  }
  return number + 1;
}
