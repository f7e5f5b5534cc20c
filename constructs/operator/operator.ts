import { ApiObject } from "cdk8s";
import { k8s } from "cdk8s-plus-28";
import { Construct } from "constructs";
import { defaultMonitoringQueries } from "../../src/api/default-monitoring.ts";
import { operatorDefinitions } from "../crds/index.ts";
import { addAccess } from "./access.ts";
import { addDeployment } from "./deployment.ts";
import { compileOperatorOptions, type OperatorOptions } from "./options.ts";
import { addWebhooks } from "./webhooks.ts";

/** The operator and all that it needs in a Kubernetes cluster. */
export class Operator extends Construct {
  constructor(scope: Construct, id: string, options: OperatorOptions = {}) {
    super(scope, id);
    const compiled = compileOperatorOptions(options);
    new k8s.KubeNamespace(this, "Namespace", {
      metadata: { name: compiled.namespace, labels: { "app.kubernetes.io/name": "cloudnative-pg" } },
    });
    if (compiled.crds) this.addDefinitions();
    addAccess(this, compiled);
    new k8s.KubeConfigMap(this, "DefaultMonitoring", {
      metadata: {
        name: "cnpg-default-monitoring",
        namespace: compiled.namespace,
        labels: { "cnpg.io/reload": "" },
      },
      data: { queries: defaultMonitoringQueries },
    });
    addWebhooks(this, compiled);
    addDeployment(this, compiled);
  }

  private addDefinitions(): void {
    for (const definition of operatorDefinitions) {
      new ApiObject(this, definition.metadata.name, { ...definition });
    }
  }
}
