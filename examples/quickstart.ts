import { type App, Chart } from "cdk8s";
import { Cluster } from "../constructs/index.ts";

/** A three-instance cluster: what `npm start` runs. */
export function quickstart(app: App): void {
  const chart = new Chart(app, "quickstart");
  new Cluster(chart, "quickstart", {
    namespace: "default",
    instances: 3,
    image: "localhost/postgresql:17",
    storage: "1Gi",
    database: "app",
  });
}
