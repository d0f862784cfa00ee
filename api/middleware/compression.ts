import { constants } from 'node:zlib';
import type { Middleware } from 'koa';
import compress from 'koa-compress';

/** A shorter response fits into one packet, compressed or not. */
const THRESHOLD_BYTES = 1_400;

/**
 * Compresses responses that `mount` allows to, with Brotli or gzip, as `Accept-Encoding` says. The
 * levels are those that cost little time: higher ones save a few per cent more. Streams are not
 * compressed: an error in the middle must end the connection.
 */
export function compression(): Middleware {
  const compressResponse = compress({
    threshold: THRESHOLD_BYTES,
    encodingPreference: ['br', 'gzip'],
    br: { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } },
    gzip: { level: 3 },
    deflate: false,
    zstd: false,
  });
  return async (ctx, next) => {
    await compressResponse(ctx, async () => {
      await next();
      // A client that accepts no encoding, not even none, gets none (RFC 9110, 12.5.3).
      if (ctx.acceptsEncodings('br', 'gzip', 'identity') === false) ctx.compress = false;
    });
  };
}
