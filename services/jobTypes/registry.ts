import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { TObject } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import {
  AppError,
  invalidField,
  invalidFields,
  type FieldError,
} from '../../domain/shared/errors.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { JobType, RemoteJobType } from '../../domain/jobs/jobType.ts';
import { unknownReferencesIn } from '../../domain/jobs/payloadReferences.ts';
import { maskSecretFields } from '../../domain/jobs/secretFields.ts';
import type { RemoteTypeDefinition } from '../../domain/runners/definition.ts';
import { maskInTurns } from '../../platform/maskInTurns.ts';
import { compileForeignSchema, SchemaNotAccepted } from '../../platform/foreignSchema.ts';
import { joinRuns } from '../../platform/joinRuns.ts';
import { compileCheck, type SchemaCheck } from '../../platform/schemaCheck.ts';

export type JobTypes = ReturnType<typeof createJobTypes>;

type RegisteredType = { type: JobType; check: SchemaCheck };
type RegisteredRemote = RegisteredType & { type: RemoteJobType };
type RemoteTypes = ReadonlyMap<string, RegisteredRemote>;

/** Compiled schemas that are kept: those of the types of runners, and of versions that some runners still have. */
const MAX_RUNNER_CHECKS = 2_000;

/**
 * The job types of this process, with the checks of their payloads and results. Types are registered after
 * the services are built, because a type may use any service and services use the registry. Those of
 * runners are records: the process reads them again when they change (`refresh`).
 */
export function createJobTypes() {
  const registered = new Map<string, RegisteredType>();
  let ownNames: readonly string[] = [];
  let remote: RemoteTypes = new Map();
  let loadRemote: () => Promise<RemoteJobType[]> = () => Promise.resolve([]);
  const runnerChecks = new LRUCache<string, SchemaCheck>({ max: MAX_RUNNER_CHECKS });

  const entry = (name: string): RegisteredType | undefined =>
    registered.get(name) ?? remote.get(name);

  const find = (name: string): JobType | undefined => entry(name)?.type;

  function get(name: string, pointer = '/type'): JobType {
    const type = find(name);
    if (!type)
      throw invalidField('body', pointer, 'unknown_job_type', `there is no job type ${name}`);
    return type;
  }

  /** The check of a schema of runners, which versions of a type often have in common. */
  function runnerCheck(schema: object): SchemaCheck {
    const key = hash('sha256', JSON.stringify(schema), 'base64');
    let known = runnerChecks.get(key);
    if (!known) runnerChecks.set(key, (known = compileLazily(schema)));
    return known;
  }

  /** A type of runners may be another version than the one that this process knows as the current one. */
  function checkOf(type: JobType): SchemaCheck {
    const known = entry(type.name);
    if (type.lane === 'remote' && known?.type !== type) return runnerCheck(type.payload);
    return assertDefined(known, `job type ${type.name}`).check;
  }

  const check = (type: JobType, payload: unknown) => checkOf(type)(payload);

  /** Reads the types of runners again. Calls during a run share the next one. */
  const refresh = joinRuns(async () => {
    const types = await loadRemote();
    remote = new Map(
      types.map((type) => [type.name, { type, check: runnerCheck(type.payload) }] as const),
    );
  });

  return {
    /** Sets how the types of runners are read. */
    useRemote: (load: () => Promise<RemoteJobType[]>): void => void (loadRemote = load),

    refresh,

    /**
     * As `refresh`, if one of these types is not known: another process may have accepted it just now, or this one
     * has not read the types yet. Call it before a decision for which an unknown type is a reason.
     */
    async refreshUnknown(...names: readonly string[]): Promise<void> {
      if (names.some((name) => !find(name))) await refresh();
    },

    /**
     * Adds types; `compile` compiles their schemas. Throws when a name is taken, or a payload refers to
     * what is no resource.
     */
    register(types: readonly JobType[], compile: (schema: TObject) => SchemaCheck = compileCheck) {
      for (const type of types) {
        if (registered.has(type.name)) throw new Error(`The job type ${type.name} exists already`);
        const [unknown] = unknownReferencesIn(type.payload);
        if (unknown !== undefined)
          throw new Error(`The job type ${type.name} refers to ${unknown}, which is no resource`);
        registered.set(type.name, { type, check: compile(type.payload) });
      }
      ownNames = [...registered.keys()];
    },

    /** True for a type of this process, whose name no type of runners may have. */
    isOwn: (name: string): boolean => registered.has(name),

    /** The names of the types of this process. */
    ownNames: (): readonly string[] => ownNames,

    all: (): JobType[] => [...registered.values(), ...remote.values()].map(({ type }) => type),

    find,

    /** The type called `name`. Error: `invalid_request` at `pointer`. */
    get,

    /**
     * The type called `name`, which callers may use directly. Error: `invalid_request` at `pointer`,
     * with `unknown_job_type`, `job_type_disabled` or `job_type_internal`.
     */
    getPublic(name: string, pointer = '/type'): JobType {
      const type = get(name, pointer);
      if (type.lane === 'remote' && !type.isEnabled)
        throw invalidField(
          'body',
          pointer,
          'job_type_disabled',
          `the job type ${name} is disabled`,
        );
      if (type.createdOnlyBy === null) return type;
      throw invalidField(
        'body',
        pointer,
        'job_type_internal',
        `jobs of the type ${name} are created by ${type.createdOnlyBy}`,
      );
    },

    /**
     * A payload of the type called `name` as a caller sees it. Its author sees what the type does
     * not redact; other callers see neither credentials nor what the schema marks as secret.
     */
    async show(
      name: string,
      payload: Record<string, unknown>,
      { isAuthor }: { isAuthor: boolean },
    ): Promise<Record<string, unknown>> {
      const type = find(name);
      if (!type) return {};
      const redacted = type.redact(payload) as Record<string, unknown>;
      if (isAuthor) return redacted;
      // The payload may be from an earlier version of the type, which had other secret fields.
      const schemas = [type.payload, ...(type.lane === 'remote' ? type.secretSchemas : [])];
      return maskInTurns(
        schemas.reduce<typeof redacted>(
          (shown, schema) => maskSecretFields(schema, shown),
          redacted,
        ),
      );
    },

    /** True when the payload satisfies the schema of its type. */
    isValidPayload: (type: JobType, payload: unknown): boolean => check(type, payload).length === 0,

    /** The first thing that the schema of its type does not allow of a payload, as a sentence; null if it is valid. */
    payloadError(type: JobType, payload: unknown): string | null {
      const [error] = check(type, structuredClone(payload));
      return error ? `The payload${error.pointer} ${error.message}` : null;
    },

    /** What a version of a type of runners does not allow of a result. */
    resultErrors: (
      { result: schema = {} }: Pick<RemoteTypeDefinition, 'result'>,
      result: unknown,
    ) => runnerCheck(schema)(result),

    /**
     * Checks the payload of jobs at the caller's tenant. Returns what the installation lacks for them at
     * present. Errors: `invalid_request` that names every bad field under `pointer`; those of the check
     * of the type.
     */
    async checkPayload(
      type: JobType,
      payload: object,
      caller: Caller,
      pointer = '/payload',
    ): Promise<readonly AppError[]> {
      const errors = check(type, payload);
      if (errors.length > 0) throw invalidUnder(pointer, errors);
      try {
        return (await type.check?.(payload, caller)) ?? [];
      } catch (error) {
        if (error instanceof AppError && error.extra.errors)
          throw invalidUnder(pointer, error.extra.errors);
        throw error;
      }
    },
  };
}

const invalidUnder = (pointer: string, errors: readonly Omit<FieldError, 'in'>[]): AppError =>
  invalidFields(
    errors.map((e): FieldError => ({ ...e, in: 'body', pointer: `${pointer}${e.pointer}` })),
  );

/** Compiles the schema of a runner at its first use. */
function compileLazily(schema: object): SchemaCheck {
  let compiled: SchemaCheck | undefined;
  return (value) => (compiled ??= compileStored(schema))(value);
}

/**
 * A runner announces no schema that does not compile, but one may have been accepted before a limit. All values are
 * refused then, with the reason: requests and attempts that only failed would be repeated.
 */
function compileStored(schema: object): SchemaCheck {
  try {
    return compileForeignSchema(schema);
  } catch (error) {
    if (!(error instanceof SchemaNotAccepted)) throw error;
    const message = `cannot be checked, as the schema of the job type is no longer accepted: ${error.message}`;
    return () => [{ pointer: '', code: 'schema_not_accepted', message }];
  }
}
