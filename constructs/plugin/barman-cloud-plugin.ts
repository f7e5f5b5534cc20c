import { ApiObject } from "cdk8s";
import { k8s } from "cdk8s-plus-28";
import { Construct } from "constructs";
import { pluginService } from "../../src/api/plugin-service.ts";
import { objectStore } from "../crds/object-store.ts";
import { addAccess } from "./access.ts";
import { addCertificates } from "./certificates.ts";
import { addDeployment } from "./deployment.ts";
import { pluginNames, pluginPodLabels, pluginPort } from "./names.ts";
import { type BarmanCloudPluginOptions, type CompiledPluginOptions, compilePluginOptions } from "./options.ts";
import { addStorePolicy } from "./store-policy.ts";

/** The barman-cloud plugin and all that it needs beside the operator, whose namespace it shares. */
export class BarmanCloudPlugin extends Construct {
  constructor(scope: Construct, id: string, options: BarmanCloudPluginOptions = {}) {
    super(scope, id);
    const compiled = compilePluginOptions(options);
    if (compiled.crds) new ApiObject(this, objectStore.metadata.name, { ...objectStore });
    if (compiled.storePolicy) addStorePolicy(this);
    addAccess(this, compiled);
    this.addService(compiled);
    if (compiled.certificates === "cert-manager") addCertificates(this, compiled);
    addDeployment(this, compiled);
  }

  /** How the operator finds the plugin. */
  private addService({ namespace }: CompiledPluginOptions): void {
    new k8s.KubeService(this, "Service", {
      metadata: {
        name: pluginNames.service,
        namespace,
        labels: { ...pluginPodLabels, [pluginService.label]: "barman-cloud.cloudnative-pg.io" },
        annotations: {
          [pluginService.clientSecret]: pluginNames.clientSecret,
          [pluginService.serverSecret]: pluginNames.serverSecret,
          [pluginService.port]: String(pluginPort),
        },
      },
      spec: {
        selector: pluginPodLabels,
        ports: [{ port: pluginPort, protocol: "TCP", targetPort: k8s.IntOrString.fromNumber(pluginPort) }],
      },
    });
  }
}
