import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Real peers are slow to start on two cores; pure tests never come near this.
    testTimeout: 60_000,
    hookTimeout: 300_000,
    retry: 0,
    passWithNoTests: false,
  },
});
