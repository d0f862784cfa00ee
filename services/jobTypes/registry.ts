import { invalidField, invalidFields, type FieldError } from '../../domain/shared/errors.ts';
import type { JobType } from '../../domain/jobType.ts';
import { compileCheck, type Check } from '../../platform/schemaCheck.ts';

export type JobTypes = ReturnType<typeof createJobTypes>;

/** The job types of this process, with their payload schemas compiled. */
export function createJobTypes(types: readonly JobType[]) {
  const byName = new Map(types.map((type) => [type.name, type]));
  const checks = new Map<string, Check>(
    types.map((type) => [type.name, compileCheck(type.payload)]),
  );

  function get(name: string, pointer = '/type'): JobType {
    const type = byName.get(name);
    if (!type)
      throw invalidField('body', pointer, 'unknown_job_type', `There is no job type ${name}.`);
    return type;
  }

  return {
    all: types,

    /** The type called `name`. Error: `invalid_request` at `/type`. */
    get,

    /** The same for a job that a caller creates directly. Error: `invalid_request` at `pointer`. */
    getDirect(name: string, pointer = '/type'): JobType {
      const type = get(name, pointer);
      if (type.onlyThrough === null) return type;
      throw invalidField(
        'body',
        pointer,
        'not_direct',
        `jobs of the type ${name} are made by ${type.onlyThrough}`,
      );
    },

    find: (name: string): JobType | undefined => byName.get(name),

    /** True when a payload is what its type wants. */
    accepts: (type: JobType, payload: unknown): boolean =>
      (checks.get(type.name)?.(payload) ?? []).length === 0,

    /** Error: `invalid_request` that names every bad field under `pointer`. */
    checkPayload(type: JobType, payload: unknown, pointer = '/payload'): void {
      const errors = checks.get(type.name)?.(payload) ?? [];
      if (errors.length === 0) return;
      throw invalidFields(
        errors.map((e): FieldError => ({ ...e, in: 'body', pointer: `${pointer}${e.pointer}` })),
      );
    },
  };
}
