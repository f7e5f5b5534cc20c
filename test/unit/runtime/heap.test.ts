import fc from "fast-check";
import { expect, it } from "vitest";
import { Heap } from "../../../src/runtime/heap.ts";

it("gives items out in order, whatever the order of pushes and pops", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.integer({ min: -50, max: 50 }), fc.constant("pop" as const))), (steps) => {
      const heap = new Heap<number>((a, b) => a < b);
      const model: number[] = [];
      for (const step of steps) {
        if (step === "pop") {
          expect(heap.pop()).toBe(model.shift());
        } else {
          heap.push(step);
          model.push(step);
          model.sort((a, b) => a - b);
        }
        expect(heap.peek()).toBe(model[0]);
        expect(heap.size).toBe(model.length);
      }
      for (const item of model) expect(heap.pop()).toBe(item);
      expect(heap.pop()).toBeUndefined();
    }),
  );
});
