import type { Vault } from '../../platform/vault.ts';

export type SecretValues = ReturnType<typeof createSecretValues>;

/** Encrypts and decrypts the values of secrets, each for its own row. */
export const createSecretValues = (vault: Vault) => {
  const contextOf = (secretId: string) => `secret:${secretId}:value`;
  return {
    /** Error: `master_key_missing`. */
    seal: (secretId: string, value: string): string => vault.seal(value, contextOf(secretId)),
    /** Errors: `master_key_missing`; an `Error` if the stored value was modified or moved. */
    open: (secretId: string, sealed: string): string => vault.open(sealed, contextOf(secretId)),
    isCurrent: vault.isCurrent,
  };
};
