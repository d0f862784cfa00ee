import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Context } from 'koa';
import { assertDefined } from '../../domain/shared/assert.ts';

export type Encoding = 'br' | 'gzip' | 'identity';

/**
 * A content that all responses share, in the encodings in which it is sent. It is sent as it is, so that a client
 * that does not read it holds no copy, and none is compressed for it.
 */
export type SharedContent = Partial<Record<Encoding, Buffer>>;

/** `text` in every encoding. */
export async function sharedContentOf(text: string): Promise<SharedContent> {
  const identity = Buffer.from(text);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 5,
    [constants.BROTLI_PARAM_SIZE_HINT]: identity.length,
  };
  const br = await promisify(brotliCompress)(identity, { params });
  return { identity, br, gzip: await promisify(gzip)(identity) };
}

/** The encoding that the client prefers, of those that the content has. */
export function chooseEncoding(ctx: Context, content: SharedContent): Encoding {
  const offered = (['br', 'gzip', 'identity'] as const).filter((name) => content[name]);
  const accepted = ctx.acceptsEncodings(...offered);
  return offered.find((name) => name === accepted) ?? 'identity';
}

/** Responds with `content`, or with 304 if the client has it. `encoding` is that of `chooseEncoding`. */
export function sendShared(ctx: Context, content: SharedContent, encoding: Encoding): void {
  ctx.compress = false;
  ctx.vary('accept-encoding');
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (encoding !== 'identity') ctx.set('content-encoding', encoding);
  ctx.body = assertDefined(content[encoding], 'content');
}
