import { findHolders, findRoles, type Holder } from '../db/access.ts';
import { commentsOf, decisionsOf } from '../db/approvals.ts';
import type { Knex } from '../db/knex.ts';
import type { ApprovalComment, ApprovalDecision } from '../db/models/Approval.ts';
import { isSamePerson, normalName } from '../domain/approvals.ts';
import type { Caller } from '../domain/caller.ts';
import { AppError } from '../domain/errors.ts';
import type { FrozenEffect } from '../domain/inventory/frozenPlan.ts';
import { RESOURCES } from '../domain/inventory/resources/index.ts';
import type { Role } from '../domain/roles.ts';
import { contains, covers, isNowhere, type Scope } from '../domain/scope.ts';
import type { Access } from './access.ts';
import type { ApprovalChecks, Hindrance } from './approvalChecks.ts';
import { placeOfApproval } from './approvalTrail.ts';
import type { Seen } from './approvals.ts';

export type ApprovalPages = ReturnType<typeof createApprovalPages>;

/** Somebody who is named, and whether they could decide. */
export type NamedDecider = Pick<Holder, 'id' | 'username' | 'displayName'> & { mayDecide: boolean; reason: string | null };

/** All that somebody needs who is to decide. */
export type ApprovalPage = Seen & {
  requester: Pick<Holder, 'id' | 'username' | 'displayName'> | null;
  deciders: { users: NamedDecider[]; roles: Role[] };
  decisions: ApprovalDecision[]; comments: ApprovalComment[];
  /** Whether the reader may be told of a record that changes. */
  isTold(effect: FrozenEffect): boolean;
  /** Whether the reader may be told which records stand against it. */
  isToldWhy: boolean;
  /** Why it would not be carried out as the world is now; null when it would, or when that is over. */
  hindrance: Hindrance | null;
};

/**
 * Whether a reader is told of a record that changes: where they may read it, or where it lies inside the place of a request
 * that they may decide about. Catalogues are for all who may read inventory.
 */
const isTold = (scope: Scope, { approval, refusal }: Seen) => ({ resource, place }: FrozenEffect): boolean =>
  covers(scope, place) || (RESOURCES[resource].standing === 'catalogue' && !isNowhere(scope)) || (refusal === null && contains(placeOfApproval(approval), place));

function reasonNot({ id, username, enabled, holds }: Holder, { approval }: Seen): string | null {
  if (isSamePerson(approval.requesterNames, [id, username].map(normalName))) return 'self_approval';
  if (!enabled) return 'disabled';
  return holds ? null : 'permission_denied';
}

/** Others write the same records again and again: whoever reads is told so. */
function unsure(error: unknown): Hindrance {
  if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
  return { execution: 'failed', error: { code: 'cannot_plan', message: error.message } };
}

type Deps = { db: Knex; access: Access; checks: ApprovalChecks };

/** Puts together what an approver's page shows. */
export const createApprovalPages = ({ db, access, checks }: Deps) => ({
  async pageOf(caller: Caller, seen: Seen): Promise<ApprovalPage> {
    const { approval, assignees, refusal } = seen;
    const scope = access.scope(caller, 'inventory:read');
    const [people, roles, decisions, comments] = await Promise.all([
      findHolders(db, [...assignees.userIds, approval.createdBy], 'workflow:approve', placeOfApproval(approval)),
      findRoles(db, assignees.roleIds), decisionsOf(db, approval.id), commentsOf(db, approval.id),
    ]);
    const byId = new Map(people.map((person) => [person.id, person]));
    const open = approval.status === 'pending' || approval.execution === 'queued';
    return {
      ...seen, decisions, comments,
      requester: byId.get(approval.createdBy) ?? null,
      deciders: {
        users: assignees.userIds.flatMap((id): NamedDecider[] => {
          const person = byId.get(id);
          if (!person) return [];
          const reason = reasonNot(person, seen);
          return [{ id, username: person.username, displayName: person.displayName, mayDecide: reason === null, reason }];
        }),
        roles: [...roles.values()],
      },
      isTold: isTold(scope, seen),
      isToldWhy: refusal === null || approval.createdBy === caller.actorId || covers(scope, placeOfApproval(approval)),
      hindrance: open && approval.jobType !== null ? await checks.hindranceOf(approval).catch(unsure) : null,
    };
  },
});
