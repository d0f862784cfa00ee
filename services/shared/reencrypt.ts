import { ignoreNoChange } from '../../db/core/commit.ts';
import type { Vault } from '../../platform/vault.ts';

/** How many values were encrypted again, and the ids of records with a value that no key opens. */
export type Reencryption = { reencrypted: number; unreadable: readonly string[] };

/** Encrypts the values of one record again, and counts them. */
export type Reencrypter = ReturnType<typeof createReencrypter>;

function createReencrypter(vault: Vault) {
  let changed = 0;
  let unreadable = 0;
  return {
    changed: () => changed,
    unreadable: () => unreadable,

    /** The value of this context, encrypted with the current key; as it is if no key opens it. */
    reencrypt(sealed: string, context: string): string {
      if (vault.isCurrent(sealed)) return sealed;
      let text: string;
      try {
        text = vault.open(sealed, context);
      } catch {
        unreadable += 1;
        return sealed;
      }
      changed += 1;
      return vault.seal(text, context);
    },
  };
}

/**
 * Encrypts records again, one after the other. `reencrypt` commits one, as it is under its lock, or throws
 * `NoChange` if there is nothing to write. A value that no key opens keeps no other one from it.
 */
export async function reencryptRecords<T extends { id: string }>(
  vault: Vault,
  records: readonly T[],
  reencrypt: (record: T, reencrypter: Reencrypter) => Promise<void>,
): Promise<Reencryption> {
  let reencrypted = 0;
  const unreadable: string[] = [];
  for (const record of records) {
    const reencrypter = createReencrypter(vault);
    await reencrypt(record, reencrypter).catch(ignoreNoChange(undefined));
    reencrypted += reencrypter.changed();
    if (reencrypter.unreadable() > 0) unreadable.push(record.id);
  }
  return { reencrypted, unreadable };
}
