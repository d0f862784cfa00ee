import { Readable } from 'node:stream';
import type { Context } from 'koa';

/** The most that is handed to a connection in one piece: what a client has taken shows after each. */
export const PART_BYTES = 65_536;

function* partsOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += PART_BYTES)
    yield content.subarray(at, at + PART_BYTES);
}

/** Responds with `content`, in parts if it is large, so that a client that reads it slowly makes progress. */
export function sendInParts(ctx: Context, content: Buffer): void {
  if (content.length <= PART_BYTES) {
    ctx.body = content;
    return;
  }
  ctx.body = Readable.from(partsOf(content), { objectMode: false, highWaterMark: PART_BYTES });
  ctx.length = content.length;
}
