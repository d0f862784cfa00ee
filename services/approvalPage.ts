import { findHolders, findRoles, type Holder } from '../db/access/access.ts';
import { commentsOf, decisionsOf } from '../db/approvals/approvals.ts';
import { findReadable } from '../db/inventory/records.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Approval, ApprovalComment, ApprovalDecision } from '../db/models/Approval.ts';
import { isSamePerson, normalName } from '../domain/approvals/approvals.ts';
import type { Caller } from '../domain/shared/caller.ts';
import type { FrozenEffect } from '../domain/inventory/frozenPlan.ts';
import { RESOURCE_NAMES, type ResourceName } from '../domain/inventory/names.ts';
import type { PlanConflict } from '../domain/inventory/planning.ts';
import { RESOURCES } from '../domain/inventory/resources/index.ts';
import { labelOf } from '../domain/inventory/standing.ts';
import type { Role } from '../domain/access/roles.ts';
import { contains, covers, isNowhere, type Scope } from '../domain/access/scope.ts';
import type { Log } from '../platform/log.ts';
import type { Access } from './access.ts';
import type { ApprovalChecks, Hindrance } from './approvalChecks.ts';
import { placeOfApproval } from './approvals/approvalAudit.ts';
import type { Seen } from './approvals.ts';

export type ApprovalPages = ReturnType<typeof createApprovalPages>;

/** Somebody who is named, and whether they could decide. */
export type NamedDecider = Pick<Holder, 'id' | 'username' | 'displayName'> & {
  mayDecide: boolean;
  reason: string | null;
};

/** All that somebody needs who is to decide. */
export type ApprovalPage = Seen & {
  deciders: { users: NamedDecider[]; roles: Role[] };
  decisions: ApprovalDecision[];
  comments: ApprovalComment[];
  /** Everybody who has a part in it and has an account. */
  people: ReadonlyMap<string, Pick<Holder, 'username' | 'displayName'>>;
  /** What the records are called that effects refer to, by their ids, where the reader may read them. */
  labels: ReadonlyMap<string, string>;
  /** Whether the reader may be told what was asked for of the inventory, and what the plan advised. */
  isToldPlan: boolean;
  /** Whether the reader may be told of a record that changes. */
  isTold(effect: FrozenEffect): boolean;
  /** A conflict as the reader may be told of it: it was found with the requester's eyes. */
  tellConflict(conflict: PlanConflict): PlanConflict;
  /** Why it would not be carried out as the world is now; null when it would, when that is over, or when nobody looked. */
  hindrance: Hindrance | null;
};

/**
 * Whether a reader is told of a record that changes: where they may read it, or where it lies inside the place of a request
 * that they may decide about. Catalogues are for all who may read inventory.
 */
const isTold =
  (scope: Scope, { approval, refusal }: Seen) =>
  ({ resource, place }: FrozenEffect): boolean =>
    covers(scope, place) ||
    (RESOURCES[resource].standing === 'catalogue' && !isNowhere(scope)) ||
    (refusal === null && contains(placeOfApproval(approval), place));

function reasonNot(
  { id, username, enabled, holds }: Holder,
  { approval }: Seen,
  decisions: readonly ApprovalDecision[],
): string | null {
  if (
    decisions.some(
      ({ actorId, actorNames }) =>
        actorId === id || isSamePerson(actorNames, [id, username].map(normalName)),
    )
  )
    return 'already_decided';
  if (approval.status !== 'pending') return approval.status;
  if (isSamePerson(approval.requesterNames, [id, username].map(normalName))) return 'self_approval';
  if (!enabled) return 'disabled';
  return holds ? null : 'permission_denied';
}

/** Plans that readers of one process may have made at once. */
const MAX_LOOKS = 4;

export const NOT_LOOKED_AT = 'not_looked_at';
const notLookedAt: Hindrance = {
  execution: 'failed',
  error: {
    code: NOT_LOOKED_AT,
    message: 'Whether it would be carried out now could not be looked at; read it again',
  },
};

const isOfInventory = (name: string | null): name is ResourceName =>
  name !== null && (RESOURCE_NAMES as readonly string[]).includes(name);

type Deps = { db: Knex; access: Access; checks: ApprovalChecks; log: Log };

/** Puts together what an approver's page shows. */
export function createApprovalPages({ db, access, checks, log }: Deps) {
  const looks = new Map<string, Promise<Hindrance | null>>();

  /** Readers of one request share a look, and many looks do not take the place of what else there is to do. */
  async function hindranceOf(approval: Approval): Promise<Hindrance | null> {
    const known = looks.get(approval.id);
    if (known) return known;
    if (looks.size >= MAX_LOOKS) return notLookedAt;
    const look = checks
      .hindranceOf(approval)
      .catch((error: unknown) => {
        log.warn(
          { err: error, approvalId: approval.id },
          'a request could not be planned for its reader',
        );
        return notLookedAt;
      })
      .finally(() => looks.delete(approval.id));
    looks.set(approval.id, look);
    return look;
  }

  async function conflictsFor(
    scope: Scope,
    { own }: Seen,
    conflicts: readonly PlanConflict[],
  ): Promise<ApprovalPage['tellConflict']> {
    const readable = new Set<string>();
    for (const name of new Set(conflicts.map(({ resource }) => resource).filter(isOfInventory))) {
      const ids = conflicts.flatMap(({ resource, id }) =>
        resource === name && id !== null ? [id] : [],
      );
      for (const { id } of await findReadable(db, RESOURCES[name], scope, ids))
        readable.add(`${name}/${id}`);
    }
    const isTold = ({ resource, id }: PlanConflict) =>
      (id !== null && readable.has(`${resource ?? ''}/${id}`)) || (own && !isOfInventory(resource));
    return (conflict) =>
      isTold(conflict)
        ? conflict
        : { ...conflict, message: 'a record stands against it', resource: null, id: null };
  }

  /** What effects refer to, by its name; what is not there yet is in the effects themselves. */
  async function labelsFor(scope: Scope, { plan }: Approval): Promise<Map<string, string>> {
    const wanted = new Map<ResourceName, Set<string>>();
    for (const { resource, changes } of plan?.effects ?? []) {
      for (const { field, before, after } of changes) {
        const to = RESOURCES[resource].fields[field]?.reference;
        for (const id of [before, after])
          if (to !== undefined && typeof id === 'string')
            wanted.set(to, (wanted.get(to) ?? new Set()).add(id));
      }
    }
    const labels = new Map<string, string>();
    for (const [name, ids] of wanted)
      for (const row of await findReadable(db, RESOURCES[name], scope, [...ids]))
        labels.set(row.id, labelOf(RESOURCES[name], row));
    return labels;
  }

  return {
    /** The page of a request. Whether it would be carried out is looked at where `planned` asks for it. */
    async pageOf(caller: Caller, seen: Seen, planned: boolean): Promise<ApprovalPage> {
      const { approval, assignees } = seen;
      const scope = access.scope(caller, 'inventory:read');
      const open = approval.status === 'pending' || approval.execution === 'queued';
      const [roles, decisions, comments, hindrance, labels] = await Promise.all([
        findRoles(db, assignees.roleIds),
        decisionsOf(db, approval.id),
        commentsOf(db, approval.id),
        planned && open && approval.jobType !== null ? hindranceOf(approval) : null,
        labelsFor(scope, approval),
      ]);
      const involved = [
        approval.createdBy,
        approval.closedBy ?? '',
        ...[...decisions, ...comments].map(({ actorId }) => actorId),
      ];
      const people = await findHolders(
        db,
        [...new Set([...assignees.userIds, ...involved])],
        'workflow:approve',
        placeOfApproval(approval),
      );
      const byId = new Map(people.map((person) => [person.id, person]));
      return {
        ...seen,
        decisions,
        comments,
        hindrance,
        labels,
        people: byId,
        isToldPlan: seen.own || seen.refusal === null || covers(scope, placeOfApproval(approval)),
        deciders: {
          users: assignees.userIds.flatMap((id): NamedDecider[] => {
            const person = byId.get(id);
            if (!person) return [];
            const reason = reasonNot(person, seen, decisions);
            return [
              {
                id,
                username: person.username,
                displayName: person.displayName,
                mayDecide: reason === null,
                reason,
              },
            ];
          }),
          roles: [...roles.values()],
        },
        isTold: isTold(scope, seen),
        tellConflict: await conflictsFor(scope, seen, [
          ...(hindrance?.difference?.conflicts ?? []),
          ...(approval.difference?.conflicts ?? []),
        ]),
      };
    },
  };
}
