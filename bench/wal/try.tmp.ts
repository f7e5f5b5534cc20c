import { walBench } from "./wal-bench.ts"; await walBench.run(2);
