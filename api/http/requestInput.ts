import { pipeline, Transform } from 'node:stream';
import type { Context } from 'koa';
import { koaBody } from 'koa-body';
import type { TObject, TSchema } from 'typebox';
import { AppError, invalidFields, type FieldError, type FieldPlace } from '../../domain/shared/errors.ts';
import { isDeeperThan, MAX_DEPTH } from '../../platform/jsonDepth.ts';
import { compileCheck, compileCoercingCheck, type Check } from '../../platform/schemaCheck.ts';
import type { Route, Upload } from '../kit/route.ts';

const BODY_LIMIT_BYTES = 1_048_576;

const bodyTooLarge = () =>
  new AppError('body_too_large', `A body may have ${BODY_LIMIT_BYTES} bytes.`);

const parseJson = koaBody({
  jsonLimit: BODY_LIMIT_BYTES,
  json: true,
  urlencoded: false,
  text: false,
  multipart: false,
  jsonStrict: false,
  parsedMethods: ['POST', 'PUT', 'DELETE'] as never,
  onError: (error) => {
    if ((error as { status?: number }).status === 413) {
      throw bodyTooLarge();
    }
    throw invalidFields([{ in: 'body', pointer: '', code: 'json', message: 'is not valid JSON' }]);
  },
});

const parseForm = koaBody({
  formLimit: BODY_LIMIT_BYTES,
  json: false,
  urlencoded: true,
  text: false,
  multipart: false,
  queryString: { arrayLimit: 0, depth: 0, parameterLimit: 20, allowPrototypes: false },
  onError: (error) => {
    if ((error as { status?: number }).status === 413) throw bodyTooLarge();
    throw invalidFields([
      { in: 'body', pointer: '', code: 'form', message: 'is not a valid form' },
    ]);
  },
});

const placed = (place: FieldPlace, check: Check, value: unknown): FieldError[] =>
  check(value).map((error) => ({ ...error, in: place }));

/** Compiles what a route wants of a request into one function that reads and checks it, every error at once. */
export function compileInput({
  params,
  query,
  body,
  method,
  bodyType = 'json',
  bodyCheckedLater,
  upload,
}: Route) {
  // Compiled when first asked for: there are many routes, and most processes serve few of them.
  let checks: { params: Check | undefined; query: Check; body: Check | undefined } | undefined;
  const compiled = () =>
    (checks ??= {
      params: params && compileCoercingCheck(params),
      query: compileCoercingCheck(query ?? NO_FIELDS),
      body: bodyCheckedLater ? undefined : body && compileCheck(body),
    });
  const flags = booleansOf(query);
  const takesBody = (method === 'POST' || method === 'PUT') && !upload;

  return async (ctx: Context, pathParams: Record<string, string>) => {
    const { params: checkParams, query: checkQuery, body: checkBody } = compiled();
    // A path that no record can have is a record that does not exist.
    if (checkParams && checkParams(pathParams).length > 0)
      throw new AppError('not_found', 'There is no record with such an id.');
    const queryValues = readQuery(ctx, flags);
    const bodyValue = takesBody
      ? await (bodyType === 'form' ? readForm(ctx) : readBody(ctx, body))
      : undefined;
    const errors = [
      ...placed('query', checkQuery, queryValues),
      ...(checkBody ? placed('body', checkBody, bodyValue) : []),
    ];
    if (errors.length > 0) throw invalidFields(errors);
    return {
      params: pathParams,
      query: queryValues,
      body: bodyValue,
      upload: upload && uploadOf(ctx, upload),
    };
  };
}

/** A file as it comes in; it fails where it is longer than it may be. */
function uploadOf(ctx: Context, { types, limitBytes }: NonNullable<Route['upload']>): Upload {
  const contentType = ctx.is(...types);
  if (typeof contentType !== 'string')
    throw new AppError('media_type_unsupported', `The body must be ${types.join(' or ')}.`);
  if (ctx.get('content-encoding') !== '' && ctx.get('content-encoding') !== 'identity')
    throw new AppError(
      'media_type_unsupported',
      'The file must be sent as it is, without a Content-Encoding.',
    );
  const tooLarge = () => new AppError('body_too_large', `A file may have ${limitBytes} bytes.`);
  if (Number(ctx.get('content-length')) > limitBytes) throw tooLarge();
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > limitBytes ? tooLarge() : null, chunk);
    },
  });
  return { contentType, source: pipeline(ctx.req, limit, () => undefined) };
}

const NO_FIELDS = {
  type: 'object',
  properties: {},
  additionalProperties: false,
} as unknown as TObject;

const booleansOf = (query: TObject | undefined): string[] =>
  Object.entries(query?.properties ?? {}).flatMap(([name, schema]) =>
    (schema as { type?: string }).type === 'boolean' ? [name] : [],
  );

/** The query as a plain object that the check may change; a flag may stand without a value: `?follow`. */
function readQuery(ctx: Context, flags: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = { ...ctx.query };
  for (const flag of flags) if (values[flag] === '') values[flag] = 'true';
  return values;
}

/** A form as a browser posts it: names and values. */
async function readForm(ctx: Context): Promise<unknown> {
  if (!ctx.is('urlencoded'))
    throw new AppError(
      'media_type_unsupported',
      'The body must be application/x-www-form-urlencoded.',
    );
  if (Number(ctx.request.headers['content-length']) > BODY_LIMIT_BYTES) throw bodyTooLarge();
  await parseForm(ctx, () => Promise.resolve());
  // The parser's object has no prototype, or one of its own.
  return { ...(ctx.request as { body?: object }).body };
}

async function readBody(ctx: Context, schema: TSchema | undefined): Promise<unknown> {
  const length = ctx.request.headers['content-length'];
  const empty =
    length === '0' ||
    (length === undefined && ctx.request.headers['transfer-encoding'] === undefined);
  if (empty) return schema ? {} : undefined;
  const encoding = ctx.get('content-encoding').toLowerCase();
  if (
    !ctx.is('json', '+json') ||
    !/^(utf-8)?$/i.test(ctx.request.charset) ||
    !/^(identity|gzip|deflate)?$/.test(encoding)
  ) {
    throw new AppError(
      'media_type_unsupported',
      'The body must be application/json in UTF-8, plain, gzip or deflate.',
    );
  }
  if (Number(length) > BODY_LIMIT_BYTES) throw bodyTooLarge();
  await parseJson(ctx, () => Promise.resolve());
  const { body } = ctx.request as { body?: unknown };
  if (isDeeperThan(MAX_DEPTH, body)) {
    throw invalidFields([
      {
        in: 'body',
        pointer: '',
        code: 'depth',
        message: `is nested deeper than ${MAX_DEPTH} levels`,
      },
    ]);
  }
  if (
    schema === undefined &&
    typeof body === 'object' &&
    body !== null &&
    Object.keys(body).length > 0
  ) {
    throw invalidFields([
      { in: 'body', pointer: '', code: 'unknown_field', message: 'this request takes no body' },
    ]);
  }
  return body;
}
