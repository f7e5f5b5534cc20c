import { network } from "../../local/cluster/addresses.ts";
import type { Fault, PlacedInstance } from "./fault.ts";
import { dropPackets } from "./packet-filter.ts";

const addresses = (instances: readonly PlacedInstance[]) => instances.map(({ address }) => address);

/** Partitions between pods, made where the one side of them runs; what is not named goes on. */
export const networkFaults: Readonly<Record<string, Fault>> = {
  "api-server-unreachable": {
    about: "the primary's node does not reach the API server for 20 s, and everything else",
    holdSeconds: 20,
    make: ({ primary }) => dropPackets(primary.node, { to: [network.controlPlane], port: network.apiPort }),
  },
  "primary-cut-from-standbys": {
    about: "the primary and the standbys do not reach each other for 30 s, the clients and the API server do",
    holdSeconds: 30,
    make: ({ primary, standbys }) =>
      dropPackets(
        primary.node,
        { from: [primary.address], to: addresses(standbys) },
        { from: addresses(standbys), to: [primary.address] },
      ),
  },
  "primary-unheard": {
    about: "the standbys get nothing from the primary for 30 s, while it hears them",
    holdSeconds: 30,
    make: ({ primary, standbys }) => dropPackets(primary.node, { from: [primary.address], to: addresses(standbys) }),
  },
  "primary-deaf": {
    about: "the primary gets nothing from the standbys for 30 s, while they hear it",
    holdSeconds: 30,
    make: ({ primary, standbys }) => dropPackets(primary.node, { from: addresses(standbys), to: [primary.address] }),
  },
  "primary-alone-with-clients": {
    about: "the primary reaches neither the standbys nor the API server for 40 s, and its clients all the time",
    holdSeconds: 40,
    make: ({ primary, standbys }) =>
      dropPackets(
        primary.node,
        { from: [primary.address], to: addresses(standbys) },
        { from: addresses(standbys), to: [primary.address] },
        { to: [network.controlPlane], port: network.apiPort },
      ),
  },
  "standby-cut-off": {
    about: "one standby and the other instances do not reach each other for 30 s",
    holdSeconds: 30,
    make: ({ primary, standbys: [standby, ...others] }) => {
      if (!standby) throw new Error("there is no standby to cut off");
      const rest = addresses([primary, ...others]);
      return dropPackets(standby.node, { from: [standby.address], to: rest }, { from: rest, to: [standby.address] });
    },
  },
  "operator-cut-from-primary": {
    about: "the operator and the primary do not reach each other for 30 s",
    holdSeconds: 30,
    make: ({ primary, operators }) =>
      dropPackets(primary.node, { from: [primary.address], to: operators }, { from: operators, to: [primary.address] }),
  },
};
