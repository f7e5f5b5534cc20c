import { WalError } from "../../archive/wal-error.ts";
import { classifyWalFailure } from "../../barman/failure-class.ts";
import { findObjectStoreError } from "../../ports/object-store.ts";
import { StatusError } from "../framework/status-error.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";

/** Runs a WAL call so that its failures reach the client with the status that says whether a retry can help. */
export async function withWalStatus<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WalError)) throw error;
    throw new StatusError(classifyWalFailure(error.kind).grpc, error.message, { cause: error });
  }
}

/** Runs work against a store; when that refuses the credentials, the next call reads them anew. */
export async function withFreshCredentials<T>(
  access: StoreAccess,
  facts: StoreFacts,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (findObjectStoreError(error, "denied")) access.forget(facts);
    throw error;
  }
}
