import { hash } from 'node:crypto';
import { columnKindOf, kindOf } from '../../../domain/inventory/lists.ts';
import { MAX_MUTATIONS } from '../../../domain/inventory/mutations.ts';
import { isValid, type Mutation, type Planned } from '../../../domain/inventory/planning.ts';
import type { Resource, Row } from '../../../domain/inventory/resource.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { JobFailure, type JobTools } from '../../../domain/jobs/jobType.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import { pageOf, type FilterValue, type ListCondition } from '../../../domain/shared/lists.ts';
import type { ApprovedChanges } from '../../inventory/approvedChanges.ts';
import type { InventoryQuestions } from '../../inventory/questions.ts';
import type { InventoryRecords } from '../../inventory/records.ts';
import { busyFailure } from '../../jobs/busy.ts';
import { applyFailure } from '../inventory/applyFailure.ts';
import type { InventoryFilter, InventoryPlan, InventoryRecord, InventoryTools } from './jobType.ts';

export type InventoryToolDeps = {
  records: Pick<InventoryRecords, 'read' | 'list'>;
  questions: Pick<InventoryQuestions, 'validate'>;
  approvedChanges: ApprovedChanges;
};

const PAGE = { default: 100, max: 500 };

/** Most values of one field of a filter. */
const MAX_VALUES = 100;

const refused = (code: string, message: string): JobFailure =>
  new JobFailure(code, message, { retryable: false });

function resourceOf(name: string): Resource {
  const resource = Object.values(RESOURCES).find((each) => each.name === name);
  if (!resource) throw refused('unknown_resource', `The inventory has no ${name}`);
  return resource;
}

function conditionsOf(resource: Resource, where: InventoryFilter): ListCondition[] {
  return Object.entries(where).map(([name, value]) => {
    const field = Object.hasOwn(resource.fields, name) ? resource.fields[name] : undefined;
    if (!field || kindOf(field) === undefined)
      throw refused('unknown_field', `${resource.name} cannot be filtered by ${name}`);
    const values = [value].flat() as FilterValue[];
    if (values.length === 0 || values.length > MAX_VALUES)
      throw refused('invalid_filter', `${name}: 1 to ${MAX_VALUES} values are allowed`);
    const canonical = values.map((each) => {
      const form = typeof each === 'string' ? (field.canonical?.(each) ?? each) : each;
      if (typeof form === 'object' && form !== null)
        throw refused('invalid_filter', `${name}: ${form.message}`);
      return form;
    });
    return { ...columnKindOf(resource, name), operator: 'in', values: canonical };
  });
}

/** A record without what is not a field of it. */
const recordView = (row: Row): InventoryRecord =>
  JSON.parse(JSON.stringify(row)) as InventoryRecord;

function assertFewMutations(mutations: readonly Mutation[]): void {
  if (!Array.isArray(mutations) || mutations.length === 0 || mutations.length > MAX_MUTATIONS)
    throw refused('change_rejected', `1 to ${MAX_MUTATIONS} mutations are allowed`);
}

/** A plan as modules see it. Records that do not exist yet have no id. */
function planView(planned: readonly Planned[]): InventoryPlan {
  const newIds = new Set(
    planned.flatMap(({ operation, subject }) =>
      operation === 'create' && subject ? [subject.id] : [],
    ),
  );
  const known = <T>(value: T): T | null =>
    typeof value === 'string' && newIds.has(value) ? null : value;
  const findings = <T extends object>(of: (each: Planned) => readonly T[]) =>
    planned.flatMap((each, mutation) => of(each).map((finding) => ({ ...finding, mutation })));
  return {
    valid: planned.every(isValid),
    changes: planned.flatMap(({ effects }) =>
      effects.map(({ action, resource, id, label, changes }) => ({
        action,
        resource,
        id: known(id),
        label,
        fields: changes.map(({ field, before, after }) => ({
          field,
          before: known(before),
          after: known(after),
        })),
      })),
    ),
    errors: findings(({ errors }) => errors),
    conflicts: findings(({ conflicts }) =>
      conflicts.map((conflict) => ({ ...conflict, id: known(conflict.id) })),
    ),
    warnings: findings(({ warnings }) => warnings),
  };
}

/** What a read or a plan fails with. */
function readFailure(error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const code = error.code === 'permission_denied' ? 'permission_lost' : error.code;
  return busyFailure(error) ?? refused(code, error.message);
}

/** Which of the changes that a job applies these are: the n-th with this content. */
function createChangesKeys() {
  const counts = new Map<string, number>();
  return (mutations: readonly Mutation[]): string => {
    const content = hash('sha256', JSON.stringify(mutations), 'base64url');
    const n = (counts.get(content) ?? 0) + 1;
    counts.set(content, n);
    return `${content}.${n}`;
  };
}

/** The inventory for one attempt of a module, with the rights of its caller at each call. */
export function createInventoryTools(
  { records, questions, approvedChanges }: InventoryToolDeps,
  { jobId, runId, attempt, signal, currentCaller }: JobTools,
): InventoryTools {
  const changesKeyOf = createChangesKeys();

  const asCaller = async <T>(
    work: (caller: Caller) => Promise<T>,
    toFailure: (error: unknown) => unknown,
  ): Promise<T> => {
    signal.throwIfAborted();
    const caller = await currentCaller();
    return work(caller).catch((error: unknown) => {
      signal.throwIfAborted();
      throw toFailure(error);
    });
  };

  return {
    async get(resource, id) {
      const { name } = resourceOf(resource);
      return recordView(await asCaller((caller) => records.read(caller, name, id), readFailure));
    },

    async list(name, { where = {}, limit = PAGE.default, after } = {}) {
      const resource = resourceOf(name);
      const page = pageOf(
        Math.max(1, Math.min(Math.trunc(limit), PAGE.max)),
        after === undefined ? undefined : { value: null, id: after },
      );
      const request = { ...page, where: conditionsOf(resource, where) };
      const { items, next } = await asCaller(
        (caller) => records.list(caller, resource.name, {}, request),
        readFailure,
      );
      return { items: items.map(recordView), next: next?.id ?? null };
    },

    async plan(mutations) {
      assertFewMutations(mutations);
      const { planned } = await asCaller(
        (caller) => questions.validate(caller, mutations, signal),
        readFailure,
      );
      return planView(planned);
    },

    async apply(mutations) {
      assertFewMutations(mutations);
      const changesKey = changesKeyOf(mutations);
      return asCaller((caller) => {
        const applying = { caller, jobId, runId, attempt, signal, changesKey };
        return approvedChanges.apply(applying, mutations, null);
      }, applyFailure);
    },
  };
}
