import {
  PluginCapability_VolumeExpansion_Type as Expansion,
  Identity,
  PluginCapability_Service_Type as Service,
} from "./gen/csi_pb.ts";
import { Registration } from "./gen/registration_pb.ts";
import { driverName } from "./names.ts";
import { answer, type Handler } from "./serve.ts";

/** Who the driver is and what it serves at all. */
export function identityHandlers(): Handler[] {
  return [
    answer(Identity.method.getPluginInfo, () => ({ name: driverName, vendorVersion: "1" })),
    answer(Identity.method.getPluginCapabilities, () => ({
      capabilities: [
        service(Service.CONTROLLER_SERVICE),
        service(Service.VOLUME_ACCESSIBILITY_CONSTRAINTS),
        { type: { case: "volumeExpansion" as const, value: { type: Expansion.ONLINE } } },
      ],
    })),
    answer(Identity.method.probe, () => ({ ready: true })),
  ];
}

/** Tells a kubelet where the driver's own socket is. */
export function registrationHandlers(endpoint: string): Handler[] {
  return [
    answer(Registration.method.getInfo, () => ({
      type: "CSIPlugin",
      name: driverName,
      endpoint,
      supportedVersions: ["1.0.0"],
    })),
    answer(Registration.method.notifyRegistrationStatus, ({ pluginRegistered, error }) => {
      if (!pluginRegistered) console.error(`The kubelet at ${endpoint} did not take the driver: ${error}`);
      return {};
    }),
  ];
}

function service(type: Service) {
  return { type: { case: "service" as const, value: { type } } };
}
