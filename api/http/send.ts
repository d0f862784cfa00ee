import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Log } from '../../platform/log.ts';
import { etagOfRecord } from './etag.ts';
import { EVENT_STREAM } from './eventStream.ts';
import type { HttpResponse } from './response.ts';
import { chooseEncoding, sendShared } from './sharedContent.ts';

/** Resolves when a stream has data or has ended. Errors: those of the stream. */
const firstChunk = (source: Readable): Promise<void> =>
  new Promise((resolve, reject) => {
    const cleanUp = () => {
      source.off('readable', done).off('error', fail).off('close', done);
    };
    const done = () => {
      cleanUp();
      resolve();
    };
    const fail = (error: Error) => {
      cleanUp();
      reject(error);
    };
    source.once('readable', done).once('error', fail).once('close', done);
  });

/**
 * Sends a stream. An error before the first byte is thrown. Koa destroys the connection after a
 * later one: the client sees that the last chunk of the body is missing.
 */
async function sendStream(
  ctx: Context,
  { contentType, source, filename }: NonNullable<HttpResponse['stream']>,
): Promise<void> {
  if (contentType !== EVENT_STREAM) await firstChunk(source);
  source.once('error', (error) => {
    const { log } = ctx.state as { log: Log };
    // Clients of event streams leave when they like.
    if (ctx.res.closed) log.debug({ path: ctx.path }, 'the client closed the connection');
    else log.error({ err: error, path: ctx.path }, 'a response is incomplete');
  });
  if (filename !== undefined) ctx.attachment(filename);
  ctx.type = contentType;
  ctx.body = source;
  // An event stream must start before its first message, which may be minutes away.
  if (contentType === EVENT_STREAM && ctx.method !== 'HEAD') ctx.flushHeaders();
}

/** Unread bytes of larger responses are counted. */
const LARGE_BYTES = 65_536;

/**
 * Sends a response, or 304 if the client has it. `onLarge` is called with the size of a large text; what it
 * throws is answered instead.
 */
export async function send(
  ctx: Context,
  response: HttpResponse,
  onLarge: (bytes: number) => void,
): Promise<void> {
  const { status, headers, body, json, document, stream } = response;
  ctx.status = status;
  ctx.set(headers);
  if (stream) {
    await sendStream(ctx, stream);
    return;
  }
  if (document) {
    ctx.type = 'application/json; charset=utf-8';
    sendShared(ctx, document, chooseEncoding(ctx, document));
    return;
  }
  if (json === undefined && body === undefined) {
    ctx.body = null;
    ctx.status = status;
    return;
  }
  // As text, so that its length is known without serializing it twice.
  const text = json ?? JSON.stringify(body);
  const etag = etagOfRecord(response, text);
  if (etag !== undefined) ctx.set('etag', etag);
  ctx.body = text;
  ctx.type = 'application/json; charset=utf-8';
  if (ctx.fresh) ctx.status = 304;
  else if (ctx.method !== 'HEAD' && Buffer.byteLength(text) > LARGE_BYTES) {
    const content = Buffer.from(text);
    onLarge(content.length);
    ctx.body = content;
  }
}
