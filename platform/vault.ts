import { AppError } from '../domain/shared/errors.ts';
import { openBytes, sealBytes, type NamedKey } from './aesGcm.ts';

export type Vault = ReturnType<typeof createVault>;

const VERSION = 'v1';

/**
 * Seals secrets for the database under the master key: `v1.<key id>.<base64url>`. The first key seals, every key
 * opens, so that a key can be replaced. `context` names where the value belongs: moved elsewhere, it does not open.
 */
export function createVault(keys: readonly NamedKey[]) {
  const [current] = keys;
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  const keyIdOf = (sealed: string) => sealed.split('.')[1] ?? '';

  return {
    /** Error: `master_key_missing`. */
    seal(text: string, context: string): string {
      if (!current)
        throw new AppError(
          'master_key_missing',
          'HOLDFAST_MASTER_KEYS is not set, so no secret can be kept.',
        );
      return `${VERSION}.${current.id}.${sealBytes(current.key, Buffer.from(text), context).toString('base64url')}`;
    },

    /** Errors: `master_key_missing` when its key is not there any more; an `Error` for a value that was changed. */
    open(sealed: string, context: string): string {
      const key = byId.get(keyIdOf(sealed));
      if (!key)
        throw new AppError(
          'master_key_missing',
          `HOLDFAST_MASTER_KEYS has no key ${keyIdOf(sealed)}.`,
        );
      return openBytes(key, Buffer.from(sealed.split('.')[2] ?? '', 'base64url'), context).toString(
        'utf8',
      );
    },

    /** The name of the key that seals, if there is one. */
    currentId: (): string | undefined => current?.id,

    /** True when a value is sealed under the first key. */
    isCurrent: (sealed: string): boolean => keyIdOf(sealed) === current?.id,
  };
}
