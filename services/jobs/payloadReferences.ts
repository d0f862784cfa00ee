import type { Knex } from '../../db/core/knex.ts';
import { readNames } from '../../db/core/names.ts';
import { recordLabels } from '../../db/inventory/labels.ts';
import { isEmpty, scopeOf, type Rights } from '../../domain/access/scope.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import {
  MAX_REFERENCES,
  referencesIn,
  type PayloadReference,
} from '../../domain/jobs/payloadReferences.ts';
import {
  invalidField,
  invalidFields,
  MAX_FIELD_ERRORS,
  type FieldError,
} from '../../domain/shared/errors.ts';
import { nounOf } from '../../domain/shared/nouns.ts';

export type JobReferences = ReturnType<typeof createJobReferences>;

const kindsOf = ({ resources }: PayloadReference): string =>
  resources.map((name) => nounOf(name)).join(' or ');

/** Checks the records that payloads name, where the schema of the type marks them. */
export function createJobReferences({ db }: { db: Knex }) {
  /** The references to records that do not exist, or may not be read with these rights. */
  async function findUnreadable(
    rights: Rights,
    references: readonly PayloadReference[],
    executor: Knex,
  ): Promise<PayloadReference[]> {
    const scope = scopeOf(rights, 'inventory:read');
    if (references.length === 0 || isEmpty(scope)) return [...references];
    const wanted = new Map<string, Set<string>>();
    for (const { id, resources } of references)
      for (const name of resources) wanted.set(name, (wanted.get(name) ?? new Set()).add(id));
    const sources = [...wanted].flatMap(([name, ids]) =>
      isResourceName(name) ? recordLabels(RESOURCES[name], scope, ids) : [],
    );
    const found = await readNames(executor, sources);
    const readable = new Set(found.map(({ kind, id }) => `${kind}/${id}`));
    return references.filter(
      ({ id, resources }) => !resources.some((name) => readable.has(`${name}/${id}`)),
    );
  }

  return {
    /**
     * Checks the references in a payload, with one statement. Error: `invalid_request` that names every
     * record which the caller may not read, as if it did not exist.
     */
    async check(
      { rights }: { rights: Rights },
      type: JobType,
      payload: object,
      pointer = '/payload',
    ): Promise<void> {
      const references = referencesIn(type.payload, payload);
      if (references.length > MAX_REFERENCES)
        throw invalidField(
          'body',
          pointer,
          'too_many_references',
          `must refer to at most ${MAX_REFERENCES} records`,
        );
      const unreadable = await findUnreadable(rights, references, db);
      if (unreadable.length === 0) return;
      throw invalidFields(
        unreadable.slice(0, MAX_FIELD_ERRORS).map((each): FieldError => ({
          in: 'body',
          pointer: `${pointer}${each.pointer}`,
          code: 'not_found',
          message: `there is no ${kindsOf(each)} with id ${each.id}`,
        })),
      );
    },

    /** Whether the references in a payload can be read, for jobs that are created later. */
    async areReadable(
      rights: Rights,
      type: JobType,
      payload: object,
      executor = db,
    ): Promise<boolean> {
      const references = referencesIn(type.payload, payload);
      if (references.length > MAX_REFERENCES) return false;
      return (await findUnreadable(rights, references, executor)).length === 0;
    },
  };
}
