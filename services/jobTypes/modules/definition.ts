import { Type } from 'typebox';
import { PERMISSIONS } from '../../../domain/access/permissions.ts';
import { isReservedTypeName, JOB_TYPE_NAME } from '../../../domain/jobs/jobTypeNames.ts';
import { unknownReferencesIn } from '../../../domain/jobs/payloadReferences.ts';
import { RetryPolicy } from '../../../domain/jobs/retry.ts';
import { TARGET_KINDS } from '../../../domain/jobs/targets.ts';
import { TYPE_ACCESS, WantedSecrets } from '../../../domain/runners/definition.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import { compileForeignSchema, SchemaNotAccepted } from '../../../platform/foreignSchema.ts';
import { compileCheck } from '../../../platform/schemaCheck.ts';
import { API_VERSION } from './jobType.ts';

/** Limit of one attempt of a type that declares none. */
export const DEFAULT_TIMEOUT_MS = 600_000;

const MAX_TIMEOUT_MS = DAY_MS;

const MAX_SCHEMA_BYTES = 65_536;

const Definition = Type.Object(
  {
    apiVersion: Type.Literal(API_VERSION),
    name: Type.String({
      maxLength: 128,
      pattern: JOB_TYPE_NAME,
      'x-rule': 'must be two or more words of a to z, 0 to 9 and -, separated by dots',
    }),
    summary: Type.String({ minLength: 1, maxLength: 500 }),
    payload: Type.Object({ type: Type.Literal('object') }, { additionalProperties: true }),
    lane: Type.Optional(
      // Other lanes run inside of workflows, whose code is Holdfast's own.
      Type.Literal('activity'),
    ),
    targets: Type.Optional(Type.Enum([...TARGET_KINDS])),
    access: Type.Optional(Type.Enum([...TYPE_ACCESS])),
    secrets: Type.Optional(WantedSecrets),
    permission: Type.Optional(Type.Enum([...PERMISSIONS])),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: MAX_TIMEOUT_MS })),
    retry: Type.Optional(Type.Partial(RetryPolicy, { additionalProperties: false })),
    isRepeatable: Type.Optional(Type.Unknown()),
    run: Type.Unknown(),
  },
  { additionalProperties: false },
);

const checkDefinition = compileCheck(Definition);

const nameOf = (definition: Record<string, unknown>): string =>
  typeof definition.name === 'string' ? definition.name : 'a type without a name';

/** What is wrong with a definition, each with the name of the type; nothing if it can be used. */
export function definitionProblems(definition: unknown): string[] {
  if (!isJsonObject(definition)) return ['jobType was called without a definition'];
  return problemsOf(definition).map((problem) => `${nameOf(definition)}: ${problem}`);
}

function problemsOf(fields: Record<string, unknown>): string[] {
  const { apiVersion, name, payload } = fields;
  if (apiVersion !== API_VERSION)
    return [
      `apiVersion ${JSON.stringify(apiVersion)} is not known; this version of Holdfast knows ${API_VERSION}`,
    ];
  const problems = checkDefinition(asJson(fields)).map(({ pointer, message }) =>
    `${pointer.slice(1).replaceAll('/', '.')} ${message}`.trim(),
  );
  for (const field of ['run', 'isRepeatable'])
    if (fields[field] !== undefined && typeof fields[field] !== 'function')
      problems.push(`${field} must be a function`);
  if (typeof name === 'string' && isReservedTypeName(name))
    problems.push(`names that begin with ${name.split('.', 1)[0]} are Holdfast's own`);
  if (problems.length > 0 || typeof payload !== 'object' || payload === null) return problems;
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  if (bytes > MAX_SCHEMA_BYTES)
    return [`payload has ${bytes} bytes; ${MAX_SCHEMA_BYTES} are allowed`];
  const unknown = unknownReferencesIn(payload);
  if (unknown.length > 0)
    return [
      `payload refers to ${unknown.join(', ')}, which no resource of the inventory is called`,
    ];
  try {
    compileForeignSchema(payload);
    return [];
  } catch (error) {
    if (!(error instanceof SchemaNotAccepted)) throw error;
    return [`payload is not a valid schema: ${error.message}`];
  }
}

/** Functions are not JSON, and the check sets defaults in place. */
const asJson = (fields: Record<string, unknown>): unknown => ({
  ...fields,
  ...(fields.payload !== undefined && {
    payload: JSON.parse(JSON.stringify(fields.payload)) as unknown,
  }),
});
