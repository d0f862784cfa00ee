import type { Context } from 'koa';
import { Type, type TObject } from 'typebox';
import {
  AppError,
  invalidField,
  invalidFields,
  type FieldError,
  type FieldLocation,
} from '../../domain/shared/errors.ts';
import { compileNullDrop } from '../../platform/nulls.ts';
import { escapePointer } from '../../domain/shared/jsonPointer.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import { once } from '../../platform/once.ts';
import { unstorable } from '../../platform/strictJson.ts';
import { PATH_PARAMETERS } from './listCursor.ts';
import { withReadOnly } from './presentedRecord.ts';
import { declaredParameters } from './queryParameters.ts';
import { bodyLimitOf, readForm, readJson, receiveUpload } from './requestBody.ts';
import { headersReadBy, requireValues } from './requestHeaders.ts';
import type { Route, Upload } from './route.ts';

export type RawInput = {
  params: Record<string, string>;
  query: Record<string, unknown>;
  body: unknown;
  upload: Upload | undefined;
};

const NO_FIELDS = Type.Object({}, { additionalProperties: false });

/**
 * Compiles the functions that read the path, query and body of a request and check them against
 * the schemas of the route. Schemas are compiled on first use: there are many routes, and most
 * processes serve few of them.
 */
export function compileInput(route: Route, readOnly: TObject['properties']) {
  const { params, query, body, method, bodyType = 'json', bodyCheckedInHandler, upload } = route;
  const paramsCheck = once(() => params && compileCheck(params));
  const queryCheck = once(() => compileCheck(query ?? NO_FIELDS));
  const bodyCheck = once(() => (body && !bodyCheckedInHandler ? compileCheck(body) : undefined));
  const dropNulls = once(
    () => body && compileNullDrop(route.current ? withReadOnly(body as TObject, readOnly) : body),
  );
  const limitBytes = bodyLimitOf(route);
  const headerNames = headersReadBy(route);
  const takesBody = (method === 'POST' || method === 'PUT') && !upload;

  return {
    /**
     * Reads a request. `checkCaller` is called at the end of an uploaded file, which the handler reads. Errors:
     * `not_found` for a path parameter that no record can have, `invalid_request` for what cannot be read and for
     * empty headers, `body_too_large`, `media_type_unsupported`.
     */
    async read(
      ctx: Context,
      pathParams: Record<string, string>,
      checkCaller: () => Promise<unknown>,
    ): Promise<RawInput> {
      requireValues(headerNames, ctx.req);
      const isImpossible = Object.values(pathParams).some((text) => unstorable(text) !== undefined);
      if (isImpossible || (paramsCheck()?.(pathParams) ?? []).length > 0)
        throw new AppError('not_found', 'No record has this id.');
      const queryValues = readQuery(ctx, query);
      const bodyValue = takesBody
        ? await (bodyType === 'form' ? readForm(ctx, limitBytes) : readJson(ctx, body, limitBytes))
        : undefined;
      dropNulls()?.(bodyValue);
      return {
        params: pathParams,
        query: { ...queryValues, [PATH_PARAMETERS]: pathParams },
        body: bodyValue,
        upload: upload && receiveUpload(ctx, upload, checkCaller),
      };
    },

    /** Checks the values. Error: `invalid_request` with every invalid field. */
    check({ query: queryValues, body: bodyValue }: RawInput): void {
      const errors = [
        // Before the check sets defaults.
        ...at('query', unusedByStream(route, queryValues)),
        ...at('query', queryCheck()(queryValues)),
        ...at('query', textErrors(queryValues)),
        ...at('body', bodyCheck()?.(bodyValue) ?? []),
        // JSON was checked when it was parsed.
        ...(bodyType === 'form' ? at('body', textErrors(bodyValue as object)) : []),
      ];
      if (errors.length > 0) throw invalidFields(errors);
    },
  };
}

const at = (location: FieldLocation, errors: readonly Omit<FieldError, 'in'>[]): FieldError[] =>
  errors.map((error) => ({ ...error, in: location }));

/** Errors of parameters that a stream would ignore. */
const unusedByStream = (
  { notWithFollow = [] }: Route,
  query: Record<string, unknown>,
): Omit<FieldError, 'in'>[] =>
  notWithFollow
    .filter((name) => query.follow === true && query[name] !== undefined)
    .map((name) => ({
      pointer: `/${name}`,
      code: 'notAllowed',
      message: 'must not be combined with follow',
    }));

/** Errors of texts that PostgreSQL cannot store. */
const textErrors = (values: object): Omit<FieldError, 'in'>[] =>
  Object.entries(values).flatMap(([name, value]) => {
    const texts = [name, value].flat().filter((text) => typeof text === 'string');
    const message = texts.map(unstorable).find((problem) => problem !== undefined);
    return message === undefined
      ? []
      : [{ pointer: `/${escapePointer(name)}`, code: 'characters', message }];
  });

/** More than any list has filters. */
const MAX_PARAMETERS = 500;

/**
 * The query as a plain object with values of the declared types. Errors: `invalid_request` for bytes that are
 * not percent-encoded UTF-8, which the parser of URLs would replace, and for too many parameters. `ctx.query` reads
 * all of them for each: with 8,000, half a second.
 */
function readQuery(ctx: Context, schema: TObject | undefined): Record<string, unknown> {
  const refuse = (code: string, message: string) => invalidField('query', '', code, message);
  try {
    decodeURIComponent(ctx.querystring);
  } catch {
    throw refuse('encoding', 'is not percent-encoded UTF-8');
  }
  // It removes a `?` at the beginning, which is not part of the query string.
  const parameters = new URLSearchParams(`?${ctx.querystring}`);
  if (parameters.size > MAX_PARAMETERS)
    throw refuse('parameters', `must not have more than ${MAX_PARAMETERS} parameters`);
  const isFlag = ctx.querystring
    .split('&')
    .filter((part) => part !== '')
    .map((part) => !part.includes('='));
  const values = new Map<string, (string | null)[]>();
  for (const [i, [name, value]] of [...parameters].entries())
    values.set(name, [...(values.get(name) ?? []), isFlag[i] ? null : value]);
  return declaredParameters(Object.fromEntries(values), schema?.properties ?? {});
}
