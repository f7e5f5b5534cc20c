/** Condition that tells of the version of the password Secret that the operator saw last. */
export const passwordSecretChange = "PasswordSecretChange";

/** Name of the Secret with the client certificate of a DatabaseRole. */
export const clientCertificateSecret = (databaseRole: string): string => `${databaseRole}-client-cert`;
