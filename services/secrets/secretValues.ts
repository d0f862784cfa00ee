import type { Vault } from '../../platform/vault.ts';
import type { Sealing } from '../shared/reencrypt.ts';

export type SecretValues = ReturnType<typeof createSecretValues>;

/** Encrypts and decrypts the values of secrets, each for its own row. */
export const createSecretValues = (vault: Vault) => {
  const contextOf = (secretId: string) => `secret:${secretId}:value`;
  /** Error: `master_key_missing`. */
  const seal = (secretId: string, value: string): string => vault.seal(value, contextOf(secretId));
  /** Errors: `master_key_missing`; an `Error` if the stored value was modified or moved. */
  const open = (secretId: string, sealed: string): string =>
    vault.open(sealed, contextOf(secretId));
  return {
    seal,
    open,
    isCurrent: vault.isCurrent,
    sealingOf: (secretId: string): Sealing => ({
      isCurrent: vault.isCurrent,
      open: (sealed) => open(secretId, sealed),
      seal: (value) => seal(secretId, value),
    }),
  };
};
