import { createHash } from 'node:crypto';

/** Hash that the first entry of each tenant's chain links to. */
export const GENESIS: Buffer = Buffer.alloc(32);

/** SHA-256 of the previous entry's hash, the position and the content. */
export const chainHash = (previous: Buffer, position: number, content: string): Buffer =>
  createHash('sha256').update(previous).update(`\n${position}\n`).update(content).digest();
