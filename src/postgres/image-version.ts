/** A container image's parts; `tag` and `digest` are absent when the reference has none. */
export interface ImageReference {
  name: string;
  tag?: string;
  digest?: string;
}

/** Splits an image reference; a colon before the last slash belongs to the registry's port. */
export function parseImageReference(image: string): ImageReference {
  const [rest = "", digest] = image.split("@", 2);
  const colon = rest.indexOf(":", rest.lastIndexOf("/") + 1);
  return {
    name: colon < 0 ? rest : rest.slice(0, colon),
    ...(colon < 0 ? {} : { tag: rest.slice(colon + 1) }),
    ...(digest ? { digest } : {}),
  };
}

/** PostgreSQL's major version as the image's tag tells it (`18.4-system-trixie` is 18); `undefined` when it does not. */
export function imageMajor(image: string): number | undefined {
  const { tag } = parseImageReference(image);
  const digits = tag?.match(/^[0-9]+/)?.[0];
  return digits === undefined ? undefined : Number(digits);
}
