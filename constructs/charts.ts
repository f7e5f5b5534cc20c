import { Chart } from "cdk8s";
import type { Construct } from "constructs";
import { Operator } from "./operator/operator.ts";
import type { OperatorOptions } from "./operator/options.ts";
import { BarmanCloudPlugin } from "./plugin/barman-cloud-plugin.ts";
import type { BarmanCloudPluginOptions } from "./plugin/options.ts";

/** A chart with the operator alone, for `cdk8s synth` in one's own app. */
export class OperatorChart extends Chart {
  constructor(scope: Construct, id: string, options: OperatorOptions = {}) {
    super(scope, id, { disableResourceNameHashes: true });
    new Operator(this, "Operator", options);
  }
}

/** A chart with the barman-cloud plugin alone; it goes into the operator's namespace. */
export class BarmanCloudPluginChart extends Chart {
  constructor(scope: Construct, id: string, options: BarmanCloudPluginOptions = {}) {
    super(scope, id, { disableResourceNameHashes: true });
    new BarmanCloudPlugin(this, "BarmanCloudPlugin", options);
  }
}
