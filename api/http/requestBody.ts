import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { finished, Transform } from 'node:stream';
import type { Context } from 'koa';
import { koaBody } from 'koa-body';
import type { TObject, TSchema } from 'typebox';
import { AppError, invalidField, invalidFields } from '../../domain/shared/errors.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import { parseStrictJson } from '../../platform/strictJson.ts';
import type { Route, Upload } from './route.ts';

const BODY_LIMIT_BYTES = 1_048_576;
const MAX_FORM_FIELDS = 20;

/** The largest body that a route reads. */
export const bodyLimitOf = (route: Route): number =>
  route.public === undefined ? (route.bodyBytes ?? BODY_LIMIT_BYTES) : route.strangers.bodyBytes;

const bodyTooLarge = (limitBytes: number) =>
  new AppError('body_too_large', `The body must not exceed ${limitBytes} bytes.`);

/** Error: `body_too_large` if the request announces more, before any of it is read. */
export function checkContentLength(ctx: Context, limitBytes: number): void {
  if (Number(ctx.get('content-length')) > limitBytes) throw bodyTooLarge(limitBytes);
}

const unsupported = (detail: string) => new AppError('media_type_unsupported', detail);

/** Names of UTF-8, and of its part that has one byte a character. Without a name, text is UTF-8. */
const UTF_8 = /^(utf-?8|us-ascii)?$/i;

const isUtf8 = (ctx: Context): boolean => UTF_8.test(ctx.request.charset);

/**
 * Calls `fail` if a request ends before all of its body has arrived, or has ended so already: `pipe` does not
 * pass that on, so what reads a piped request would wait for ever. Returns a function that ends the watch.
 */
const watchForCut = (req: IncomingMessage, fail: (error: Error) => void): (() => void) =>
  finished(req, (error) => {
    if (error) fail(error);
  });

/**
 * Pipes a request into `target`. Unlike `pipeline`, it never destroys the request, which would
 * close the connection before the response is sent: what `target` does not take is discarded.
 */
function pipeRequest<T extends Transform>(req: IncomingMessage, target: T): T {
  const endWatch = watchForCut(req, (error) => target.destroy(error));
  target.once('close', () => {
    endWatch();
    req.unpipe(target);
    req.resume();
  });
  // A consumer that has not started to read would not see the error; it sees a destroyed stream.
  target.on('error', () => undefined);
  return req.pipe(target);
}

/**
 * Reads a body up to the limit, decompressed, as text of one character a byte: decoding, which must
 * be strict, is done afterwards.
 */
const createReader = (limitBytes: number) =>
  koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: ['json', '+json', 'urlencoded'],
    encoding: 'latin1',
    textLimit: limitBytes,
    onError(error, ctx) {
      // What was not read is discarded, so that the connection stays usable.
      ctx.req.unpipe();
      ctx.req.resume();
      if ((error as { status?: number }).status === 413) throw bodyTooLarge(limitBytes);
      throw incompleteBody();
    },
  });

const incompleteBody = () =>
  invalidField('body', '', 'encoding', 'is incomplete or not compressed as declared');

/** One for each limit that a route declares. */
const readers = new Map<number, ReturnType<typeof createReader>>();

const CONTENT_ENCODING = /^(identity|gzip|deflate)?$/;

/** Reads a body. Errors: `body_too_large`, `media_type_unsupported`, `invalid_request`. */
async function readBytes(ctx: Context, limitBytes: number): Promise<Buffer> {
  checkContentLength(ctx, limitBytes);
  // Names of encodings have no letter case (RFC 9110, 8.4.1); koa-body compares them as they are.
  const encoding = ctx.get('content-encoding').toLowerCase();
  if (!CONTENT_ENCODING.test(encoding))
    throw unsupported('The Content-Encoding must be gzip or deflate, or absent.');
  ctx.req.headers['content-encoding'] = encoding;
  const read = readers.get(limitBytes) ?? createReader(limitBytes);
  readers.set(limitBytes, read);
  // koa-body pipes a compressed body, and does not see that it was cut.
  const cut = Promise.withResolvers<never>();
  const endWatch = watchForCut(ctx.req, () => cut.reject(incompleteBody()));
  await Promise.race([read(ctx, () => Promise.resolve()), cut.promise]).finally(endWatch);
  const { body } = ctx.request as { body?: unknown };
  return Buffer.from(typeof body === 'string' ? body : '', 'latin1');
}

/** Error: `invalid_request` for bytes that are not UTF-8. A byte order mark is skipped. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalidField('body', '', 'encoding', 'is not valid UTF-8');
  }
}

/** The names and values of an HTML form. Errors: as `readBytes`. */
export async function readForm(ctx: Context, limitBytes: number): Promise<Record<string, string>> {
  if (!ctx.is('urlencoded') || !isUtf8(ctx))
    throw unsupported('The body must be application/x-www-form-urlencoded in UTF-8.');
  const text = decode(await readBytes(ctx, limitBytes));
  const form = new URLSearchParams(text);
  const refuse = (message: string) => invalidField('body', '', 'form', message);
  if (form.size > MAX_FORM_FIELDS)
    throw refuse(`must not have more than ${MAX_FORM_FIELDS} fields`);
  if (new Set(form.keys()).size < form.size) throw refuse('must not repeat a field');
  return Object.fromEntries(form);
}

const acceptsAnyText = (schema: TSchema | undefined, name: string): boolean => {
  const { properties = {} } = (schema ?? {}) as Partial<TObject>;
  return Object.hasOwn(properties, name) && 'x-any-text' in (properties[name] as object);
};

/**
 * The JSON body of a request; an empty one is `{}`, or undefined for a route without a body.
 * Errors: as `readBytes`.
 */
export async function readJson(
  ctx: Context,
  schema: TSchema | undefined,
  limitBytes: number,
): Promise<unknown> {
  const { headers } = ctx.req;
  const isEmpty =
    headers['content-length'] === '0' ||
    (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined);
  if (isEmpty) return schema ? {} : undefined;
  const isJson = ctx.is('json', '+json') && isUtf8(ctx);
  const mediaTypeError = () => unsupported('The body must be application/json in UTF-8.');
  if (!isJson && headers['content-type'] !== undefined) throw mediaTypeError();
  // Without a type only an empty body is accepted; whether it is empty shows when it is read.
  headers['content-type'] ??= 'application/json';
  const bytes = await readBytes(ctx, limitBytes);
  if (bytes.length === 0) return schema ? {} : undefined;
  if (!isJson) throw mediaTypeError();
  const { value, errors } = parseStrictJson(decode(bytes), (name) => acceptsAnyText(schema, name));
  if (errors.length > 0) throw invalidFields(errors.map((error) => ({ in: 'body', ...error })));
  if (schema) return value;
  // Client libraries send `{}` where there is no body.
  if (!isJsonObject(value) || Object.keys(value).length > 0)
    throw invalidField('body', '', 'unknown_field', 'must be empty: this request takes no body');
  return undefined;
}

/** A file of bytes: a charset would say nothing of it. */
const BINARY = 'application/octet-stream';

/**
 * The uploaded file as a stream. Errors: `media_type_unsupported`; `body_too_large`, also while
 * reading; at its end those of `checkCaller`.
 */
export function receiveUpload(
  ctx: Context,
  { examples, limitBytes }: NonNullable<Route['upload']>,
  checkCaller: () => Promise<unknown>,
): Upload {
  const types = Object.keys(examples);
  const contentType = ctx.is(...types);
  if (typeof contentType !== 'string') throw unsupported(`The body must be ${types.join(' or ')}.`);
  if (contentType !== BINARY && !isUtf8(ctx)) throw unsupported('The file must be in UTF-8.');
  if (!/^(identity)?$/i.test(ctx.get('content-encoding')))
    throw unsupported('The file must be sent without a Content-Encoding.');
  const tooLarge = () =>
    new AppError('body_too_large', `The file must not exceed ${limitBytes} bytes.`);
  if (Number(ctx.get('content-length')) > limitBytes) throw tooLarge();
  let bytes = 0;
  const hash = createHash('sha256');
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      hash.update(chunk);
      done(bytes > limitBytes ? tooLarge() : null, chunk);
    },
    flush(done) {
      checkCaller().then(() => done(), done);
    },
  });
  const digest = () => hash.copy().digest('base64url');
  return { contentType, source: pipeRequest(ctx.req, limit), digest };
}
