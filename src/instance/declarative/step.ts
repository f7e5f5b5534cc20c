import { errorText } from "./server-message.ts";

/** Names the step in the error, as users see it in the object's message. */
export async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${what}: ${errorText(error)}`, { cause: error });
  }
}
