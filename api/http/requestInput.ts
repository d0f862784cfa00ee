import { Transform } from 'node:stream';
import type { Context } from 'koa';
import { koaBody } from 'koa-body';
import type { TObject, TSchema } from 'typebox';
import {
  AppError,
  invalidFields,
  type FieldError,
  type FieldLocation,
} from '../../domain/shared/errors.ts';
import { isDeeperThan, MAX_DEPTH } from '../../platform/jsonDepth.ts';
import {
  compileCheck,
  compileCoercingCheck,
  type SchemaCheck,
} from '../../platform/schemaCheck.ts';
import type { Route, Upload } from './route.ts';

const BODY_LIMIT_BYTES = 1_048_576;

const bodyTooLarge = () =>
  new AppError('body_too_large', `The body must not exceed ${BODY_LIMIT_BYTES} bytes.`);

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

const checkAt = (location: FieldLocation, check: SchemaCheck, value: unknown): FieldError[] =>
  check(value).map((error) => ({ ...error, in: location }));

/**
 * Returns a function that reads the path, query and body of a request and checks them against the
 * schemas of the route. Errors: `invalid_request` with every invalid field, `not_found` for a path
 * parameter that no record can have, `body_too_large`, `media_type_unsupported`.
 */
export function compileInput({
  params,
  query,
  body,
  method,
  bodyType = 'json',
  bodyCheckedInHandler,
  upload,
}: Route) {
  // Compiled on first use: there are many routes, and most processes serve few of them.
  let checks:
    | { params: SchemaCheck | undefined; query: SchemaCheck; body: SchemaCheck | undefined }
    | undefined;
  const getChecks = () =>
    (checks ??= {
      params: params && compileCoercingCheck(params),
      query: compileCoercingCheck(query ?? NO_FIELDS),
      body: bodyCheckedInHandler ? undefined : body && compileCheck(body),
    });
  const booleanFlags = booleanFields(query);
  const takesBody = (method === 'POST' || method === 'PUT') && !upload;

  return async (ctx: Context, pathParams: Record<string, string>) => {
    const { params: checkParams, query: checkQuery, body: checkBody } = getChecks();
    if (checkParams && checkParams(pathParams).length > 0)
      throw new AppError('not_found', 'No record has this id.');
    const queryValues = readQuery(ctx, booleanFlags);
    const bodyValue = takesBody
      ? await (bodyType === 'form' ? readForm(ctx) : readBody(ctx, body))
      : undefined;
    const errors = [
      ...checkAt('query', checkQuery, queryValues),
      ...(checkBody ? checkAt('body', checkBody, bodyValue) : []),
    ];
    if (errors.length > 0) throw invalidFields(errors);
    return {
      params: pathParams,
      query: queryValues,
      body: bodyValue,
      upload: upload && receiveUpload(ctx, upload),
    };
  };
}

/**
 * The uploaded file as a stream. Errors: `media_type_unsupported`; `body_too_large`, also while
 * reading.
 */
function receiveUpload(ctx: Context, { types, limitBytes }: NonNullable<Route['upload']>): Upload {
  const contentType = ctx.is(...types);
  if (typeof contentType !== 'string')
    throw new AppError('media_type_unsupported', `The body must be ${types.join(' or ')}.`);
  if (ctx.get('content-encoding') !== '' && ctx.get('content-encoding') !== 'identity')
    throw new AppError(
      'media_type_unsupported',
      'The file must be sent without a Content-Encoding.',
    );
  const tooLarge = () =>
    new AppError('body_too_large', `The file must not exceed ${limitBytes} bytes.`);
  if (Number(ctx.get('content-length')) > limitBytes) throw tooLarge();
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > limitBytes ? tooLarge() : null, chunk);
    },
  });
  // Not `pipeline`, which closes the connection when the file is not read to its end.
  ctx.req.once('error', (error) => limit.destroy(error));
  return { contentType, source: ctx.req.pipe(limit) };
}

const NO_FIELDS = {
  type: 'object',
  properties: {},
  additionalProperties: false,
} as unknown as TObject;

const booleanFields = (query: TObject | undefined): string[] =>
  Object.entries(query?.properties ?? {}).flatMap(([name, schema]) =>
    (schema as { type?: string }).type === 'boolean' ? [name] : [],
  );

/**
 * The query as a plain object that the check may coerce. A flag without a value is true: `?follow`.
 */
function readQuery(ctx: Context, flags: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = { ...ctx.query };
  for (const flag of flags) if (values[flag] === '') values[flag] = 'true';
  return values;
}

/** The names and values of an HTML form. */
async function readForm(ctx: Context): Promise<unknown> {
  if (!ctx.is('urlencoded'))
    throw new AppError(
      'media_type_unsupported',
      'The body must be application/x-www-form-urlencoded.',
    );
  if (Number(ctx.request.headers['content-length']) > BODY_LIMIT_BYTES) throw bodyTooLarge();
  await parseForm(ctx, () => Promise.resolve());
  // Copied, since the object of the parser has no prototype.
  return { ...(ctx.request as { body?: object }).body };
}

async function readBody(ctx: Context, schema: TSchema | undefined): Promise<unknown> {
  const length = ctx.request.headers['content-length'];
  const isEmpty =
    length === '0' ||
    (length === undefined && ctx.request.headers['transfer-encoding'] === undefined);
  if (isEmpty) return schema ? {} : undefined;
  const encoding = ctx.get('content-encoding').toLowerCase();
  if (
    !ctx.is('json', '+json') ||
    !/^(utf-8)?$/i.test(ctx.request.charset) ||
    !/^(identity|gzip|deflate)?$/.test(encoding)
  ) {
    throw new AppError(
      'media_type_unsupported',
      'The body must be application/json in UTF-8, optionally compressed with gzip or deflate.',
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
