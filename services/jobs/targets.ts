import type { Knex } from '../../db/core/knex.ts';
import { readNames } from '../../db/core/names.ts';
import { recordLabels } from '../../db/inventory/labels.ts';
import { findTarget } from '../../db/jobs/targets.ts';
import {
  covers,
  isEmpty,
  scopeOf,
  type ResourceScope,
  type Rights,
} from '../../domain/access/scope.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { scopeOfTarget, type Target, type TargetRef } from '../../domain/jobs/targets.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';

export type JobTargets = ReturnType<typeof createJobTargets>;

/** A record that creates jobs of a tenant. */
type JobOwner = { tenantId: string; target: TargetRef | null };

const RESOURCE_OF = { site: RESOURCES.sites, device: RESOURCES.devices } as const;

/** The sites and devices that jobs are about. */
export function createJobTargets({ db, access }: { db: Knex; access: Access }) {
  /**
   * The target of a job that is created or begins later, with the rights of then. Undefined if it does
   * not exist any more, has moved to another tenant, or may not be read.
   */
  async function find(
    rights: Rights,
    ref: TargetRef,
    tenantId: string,
    executor = db,
  ): Promise<Target | undefined> {
    const target = await findTarget(executor, ref);
    const isReadable =
      target?.tenantId === tenantId &&
      covers(scopeOf(rights, 'inventory:read'), scopeOfTarget(target));
    return isReadable ? target : undefined;
  }

  return {
    /**
     * The record that a request names as the target of a job of `type`; null for a type without
     * targets. Errors: `invalid_request` at `pointer`, for a record that the caller may not read as for
     * one that does not exist; `permission_denied` if only `inventory:read` is missing there.
     */
    async resolve(
      caller: Caller,
      type: JobType,
      requested: TargetRef | null | undefined,
      pointer = '/target',
    ): Promise<Target | null> {
      const ref = checkKind(type, requested ?? null, pointer);
      if (!ref) return null;
      const target = await findTarget(db, ref);
      const scope = target && scopeOfTarget(target);
      if (!scope || !covers(access.scope(caller, 'inventory:read', 'job:write'), scope))
        throw notFoundAt(ref, pointer);
      await access.require(caller, 'inventory:read', scope);
      return target;
    },

    find,

    /**
     * The target of a job of `type` that is created later; null for a type without targets. Undefined as
     * of `find`, and if the type has other targets now.
     */
    findFor: async (
      { targets }: JobType,
      rights: Rights,
      { tenantId, target }: JobOwner,
      executor = db,
    ): Promise<Target | null | undefined> => {
      if ((target?.kind ?? 'none') !== targets) return undefined;
      return target && find(rights, target, tenantId, executor);
    },

    /**
     * What jobs of a record with a target belong to now: their tenant, if the target does not exist
     * any more or has moved to another one.
     */
    async scopeOf({ tenantId, target }: JobOwner): Promise<ResourceScope> {
      const found = target && (await findTarget(db, target));
      return found?.tenantId === tenantId ? scopeOfTarget(found) : { tenantId };
    },

    /** The name of a target for a caller who may read it, otherwise null. */
    async nameOf(caller: Caller, { kind, id }: TargetRef): Promise<string | null> {
      const scope = access.scope(caller, 'inventory:read');
      if (isEmpty(scope)) return null;
      const [found] = await readNames(db, [recordLabels(RESOURCE_OF[kind], scope, [id])]);
      return found?.label ?? null;
    },

    /** The name of a target as long as it is of a tenant, whatever the rights of readers. */
    async nameIn(tenantId: string, ref: TargetRef): Promise<string | null> {
      const target = await findTarget(db, ref);
      return target?.tenantId === tenantId ? target.name : null;
    },
  };
}

/** The target if the type has such targets; null if it has none and none is given. Error: `invalid_request`. */
function checkKind(
  { name, targets }: JobType,
  ref: TargetRef | null,
  pointer: string,
): TargetRef | null {
  if (targets === 'none') {
    if (ref === null) return null;
    throw invalidField(
      'body',
      pointer,
      'no_target',
      `must be absent: jobs of the type ${name} are about no record`,
    );
  }
  if (ref === null)
    throw invalidField(
      'body',
      pointer,
      'required',
      `is required: jobs of the type ${name} are about a ${targets}`,
    );
  if (ref.kind === targets) return ref;
  throw invalidField(
    'body',
    `${pointer}/kind`,
    'enum',
    `must be ${targets} for jobs of the type ${name}`,
  );
}

const notFoundAt = ({ kind, id }: TargetRef, pointer: string) =>
  invalidField('body', `${pointer}/id`, 'not_found', `there is no ${kind} with id ${id}`);
