import { createHash, hash, type Hash } from 'node:crypto';
import type { Pause } from '../../platform/turns.ts';

const NEWLINE = 10;
/** Bytes between two pauses. */
const TURN_BYTES = 65_536;

/**
 * A checksum of the rows of a table, in text with a line for each. It does not depend on their order: COPY fills
 * gaps in earlier pages with short rows, so PostgreSQL returns them in another order than they were loaded in.
 * Each row adds its SHA-256, as eight numbers of 32 bits, so a row that is lost or there twice counts, too.
 */
export function createRowSum() {
  const sum = new Uint32Array(8);
  let unfinished: Hash | undefined;

  function addRow(digest: Buffer): void {
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + digest.readUInt32LE(4 * i);
  }

  function addPiece(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      const row = bytes.subarray(start, end);
      addRow(unfinished ? unfinished.update(row).digest() : hash('sha256', row, 'buffer'));
      unfinished = undefined;
      start = end + 1;
    }
    if (start < bytes.length) (unfinished ??= createHash('sha256')).update(bytes.subarray(start));
  }

  return {
    /** Adds bytes that follow those that were added; a row may continue in the next ones. */
    async add(bytes: Buffer, pause: Pause): Promise<void> {
      for (let start = 0; start < bytes.length; start += TURN_BYTES) {
        addPiece(bytes.subarray(start, start + TURN_BYTES));
        await pause();
      }
    },

    /** The checksum of all rows, in hexadecimal digits. */
    digest(): string {
      if (unfinished) addRow(unfinished.digest());
      unfinished = undefined;
      return Buffer.from(sum.buffer).toString('hex');
    },
  };
}

export type RowSum = ReturnType<typeof createRowSum>;
