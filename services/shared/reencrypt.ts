import { ignoreNoChange } from '../../db/core/commit.ts';

/** How the values of a record are encrypted. */
export type Sealing = {
  /** True for a value that the current master key has encrypted. */
  isCurrent(sealed: string): boolean;
  open(sealed: string): string;
  seal(text: string): string;
};

/** How many values were encrypted again, and the ids of records with a value that no key opens. */
export type Reencryption = { reencrypted: number; unreadable: readonly string[] };

/** Encrypts the values of one record again, and counts them. */
export type Reencrypter = ReturnType<typeof createReencrypter>;

function createReencrypter() {
  let changed = 0;
  let unreadable = 0;
  return {
    changed: () => changed,
    unreadable: () => unreadable,

    /** The value, encrypted with the current key; as it is if no key opens it. */
    reencrypt(sealed: string, sealing: Sealing): string {
      if (sealing.isCurrent(sealed)) return sealed;
      let text: string;
      try {
        text = sealing.open(sealed);
      } catch {
        unreadable += 1;
        return sealed;
      }
      changed += 1;
      return sealing.seal(text);
    },
  };
}

/**
 * Encrypts records again, one after the other. `reencrypt` commits one, as it is under its lock, or throws
 * `NoChange` if there is nothing to write. A value that no key opens keeps no other one from it.
 */
export async function reencryptRecords<T extends { id: string }>(
  records: readonly T[],
  reencrypt: (record: T, reencrypter: Reencrypter) => Promise<void>,
): Promise<Reencryption> {
  let reencrypted = 0;
  const unreadable: string[] = [];
  for (const record of records) {
    const reencrypter = createReencrypter();
    await reencrypt(record, reencrypter).catch(ignoreNoChange(undefined));
    reencrypted += reencrypter.changed();
    if (reencrypter.unreadable() > 0) unreadable.push(record.id);
  }
  return { reencrypted, unreadable };
}
