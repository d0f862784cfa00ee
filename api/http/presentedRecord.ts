import { isDeepStrictEqual } from 'node:util';
import { Type, type TObject, type TSchema } from 'typebox';
import { invalidFields, versionConflict, type FieldError } from '../../domain/shared/errors.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import { escapePointer } from '../../domain/shared/jsonPointer.ts';
import { expectedVersion } from './etag.ts';
import type { Route } from './route.ts';

type Properties = Record<string, TSchema>;

/** What `include` adds to a record beside its fields. */
const INCLUDED = 'included';

/** What is no part of a record: PUT ignores any value of it. */
const BESIDE_RECORD: ReadonlySet<string> = new Set([INCLUDED, 'warnings']);

/** The properties of the records that a route returns with status 200. */
const presentedBy = (route: Route | undefined): Properties =>
  (route?.responses[200] as TObject | null | undefined)?.properties ?? {};

/** The properties that a PUT can change: those of its body that are not marked as read-only. */
const writableProperties = (body: TSchema | undefined): Properties =>
  Object.fromEntries(
    Object.entries((body as TObject | undefined)?.properties ?? {}).filter(
      ([, schema]) => (schema as { readOnly?: boolean }).readOnly !== true,
    ),
  );

/**
 * The properties that a PUT ignores when they come back unchanged: those of the record as PUT and
 * GET of the same path return it, without the ones that PUT can change. Empty for other methods.
 */
export function readOnlyProperties(route: Route, routes: readonly Route[]): Properties {
  if (!route.current) return {};
  const read = routes.find(({ method, path }) => method === 'GET' && path === route.path);
  const writable = writableProperties(route.body);
  const included = read?.includes && { [INCLUDED]: Type.Unknown() };
  const presented = { ...presentedBy(read), ...presentedBy(route), ...included };
  return Object.fromEntries(Object.entries(presented).filter(([name]) => !(name in writable)));
}

/** The body of a PUT with the read-only properties that it may contain. */
export const withReadOnly = (
  { title, ...body }: TObject & { title?: string },
  readOnly: Properties,
): TObject =>
  Type.Object(
    {
      ...body.properties,
      ...Object.fromEntries(
        Object.entries(readOnly).map(([name, schema]) => [
          name,
          Type.Optional({ ...schema, readOnly: true }),
        ]),
      ),
    },
    { ...(title !== undefined && { title }), additionalProperties: false },
  );

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/i;

/** Equal, or the same instant: clients parse times and write them in another form. */
const isSame = (value: unknown, current: unknown): boolean =>
  isDeepStrictEqual(value, current) ||
  (typeof value === 'string' &&
    typeof current === 'string' &&
    RFC_3339.test(value) &&
    RFC_3339.test(current) &&
    Date.parse(value) === Date.parse(current));

type PutRequest = Parameters<NonNullable<Route['current']>>[0] & { ifMatch: string | undefined };

/**
 * The body of a PUT without the properties that are as the caller sees them now, so that a client
 * can send back what it has read: they are not checked, and a mask keeps its secret. Errors:
 * `invalid_request` for read-only properties with another value, `version_conflict`, and those of
 * `route.current`.
 */
export async function changedProperties(
  { current, body: schema, volatile = [], passUnchanged = [] }: Route,
  readOnly: Properties,
  request: PutRequest,
  body: unknown,
): Promise<unknown> {
  if (!current || !isJsonObject(body)) return body;
  const writable = writableProperties(schema);
  const known = JSON.parse(JSON.stringify(await current(request))) as Record<string, unknown>;
  const version = expectedVersion(request.ifMatch);
  if (version !== undefined && typeof known.version === 'number' && known.version !== version)
    throw versionConflict(known.version);

  const errors: FieldError[] = [];
  const changed = Object.entries(body).filter(([name, value]) => {
    if (Object.hasOwn(writable, name))
      return (
        passUnchanged.includes(name) || !Object.hasOwn(known, name) || !isSame(value, known[name])
      );
    if (!Object.hasOwn(readOnly, name)) return true;
    if (!BESIDE_RECORD.has(name) && !volatile.includes(name) && !isSame(value, known[name]))
      errors.push({
        in: 'body',
        pointer: `/${escapePointer(name)}`,
        code: 'read_only',
        message: 'is read-only and differs from the present value',
      });
    return passUnchanged.includes(name);
  });
  if (errors.length > 0) throw invalidFields(errors);
  return Object.fromEntries(changed);
}
