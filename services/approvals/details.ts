import { findHolders, findRoles, type Holder } from '../../db/access/access.ts';
import { commentsOf, decisionsOf } from '../../db/approvals/approvals.ts';
import { findReadable } from '../../db/inventory/records.ts';
import type { Knex } from '../../db/core/knex.ts';
import { isSamePerson, normalizeName } from '../../domain/approvals/approvals.ts';
import type { ApprovalData, CommentData, DecisionData } from '../../domain/approvals/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { FrozenEffect } from '../../domain/inventory/frozenPlan.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import type { PlanConflict } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { labelOf } from '../../domain/inventory/ownership.ts';
import type { Role } from '../../domain/access/roles.ts';
import { contains, covers, isEmpty, type Scope } from '../../domain/access/scope.ts';
import type { Log } from '../../platform/log.ts';
import type { Access } from '../access/access.ts';
import type { ApprovalChecks, Blocker } from './checks.ts';
import { scopeOfApproval } from './approvalAudit.ts';
import type { ApprovalView } from './views.ts';

export type ApprovalDetailsLoader = ReturnType<typeof createApprovalDetailsLoader>;

/**
 * An assigned user, and whether the user may decide. `reason` says why not. The names are null for a
 * person whom a gateway authenticates. What such a person may do is known only when they call.
 */
export type AssignedUser = Pick<Holder, 'id'> & {
  username: string | null;
  displayName: string | null;
  mayDecide: boolean;
  reason: string | null;
};

/** A request with everything that a decision needs, as its reader may see it. */
export type ApprovalDetails = ApprovalView & {
  deciders: { users: AssignedUser[]; roles: Role[] };
  decisions: DecisionData[];
  comments: CommentData[];
  /** The accounts of all users involved, by id. */
  people: ReadonlyMap<string, Pick<Holder, 'username' | 'displayName'>>;
  /** Labels of the records that effects refer to, by id, as far as the reader may read them. */
  labels: ReadonlyMap<string, string>;
  /** True if the reader may see the requested mutations and the warnings of the plan. */
  canSeePlan: boolean;
  /** True if the reader may see an effect. */
  canSeeEffect(effect: FrozenEffect): boolean;
  /** Redacts a conflict: it was found with the rights of the requester. */
  redactConflict(conflict: PlanConflict): PlanConflict;
  /** Why the request cannot be executed now; null if it can, is finished, or was not evaluated. */
  blocker: Blocker | null;
};

/**
 * A reader sees an effect on a record that the reader may read, or that is inside the scope of a
 * request that the reader may decide on. Everyone who may read any inventory sees catalogues.
 */
const effectVisibility =
  (scope: Scope, { approval, refusal }: ApprovalView) =>
  ({ resource, resourceScope, otherScopes = [] }: FrozenEffect): boolean =>
    [resourceScope, ...otherScopes].some((each) => covers(scope, each)) ||
    (RESOURCES[resource].scopeKind === 'catalogue' && !isEmpty(scope)) ||
    (refusal === null && contains(scopeOfApproval(approval), resourceScope));

/** What is known about an assigned person whom a gateway authenticates. */
const gatewayPerson = (id: string) => ({ id, username: id, enabled: true, holds: true });

function refusalReason(
  { id, username, enabled, holds }: Omit<Holder, 'displayName'>,
  { approval }: ApprovalView,
  decisions: readonly DecisionData[],
): string | null {
  if (
    decisions.some(
      ({ actorId, actorNames }) =>
        actorId === id || isSamePerson(actorNames, [id, username].map(normalizeName)),
    )
  )
    return 'already_decided';
  if (approval.status !== 'pending') return approval.status;
  if (isSamePerson(approval.requesterNames, [id, username].map(normalizeName)))
    return 'self_approval';
  if (!enabled) return 'disabled';
  return holds ? null : 'permission_denied';
}

/** Evaluations that run concurrently in one process. They must not slow down other work. */
const MAX_CONCURRENT_EVALUATIONS = 4;

export const NOT_EVALUATED = 'not_evaluated';
const notEvaluated: Blocker = {
  execution: 'failed',
  error: {
    code: NOT_EVALUATED,
    message: 'The request was not checked, because too many checks are running; read it again',
  },
};

const isResourceName = (name: string | null): name is ResourceName =>
  name !== null && (RESOURCE_NAMES as readonly string[]).includes(name);

type Deps = { db: Knex; access: Access; checks: ApprovalChecks; log: Log };

/** Loads the details of a request for its reader. */
export function createApprovalDetailsLoader({ db, access, checks, log }: Deps) {
  const evaluations = new Map<string, Promise<Blocker | null>>();

  /** Evaluates a request. Concurrent readers of one request share an evaluation. */
  async function findBlocker(approval: ApprovalData): Promise<Blocker | null> {
    const running = evaluations.get(approval.id);
    if (running) return running;
    if (evaluations.size >= MAX_CONCURRENT_EVALUATIONS) return notEvaluated;
    const evaluation = checks
      .findBlocker(approval)
      .catch((error: unknown) => {
        log.warn(
          { err: error, approvalId: approval.id },
          'an approval request could not be evaluated for its reader',
        );
        return notEvaluated;
      })
      .finally(() => evaluations.delete(approval.id));
    evaluations.set(approval.id, evaluation);
    return evaluation;
  }

  async function conflictRedaction(
    scope: Scope,
    { isRequester }: ApprovalView,
    conflicts: readonly PlanConflict[],
  ): Promise<ApprovalDetails['redactConflict']> {
    const readable = new Set<string>();
    for (const name of new Set(conflicts.map(({ resource }) => resource).filter(isResourceName))) {
      const ids = conflicts.flatMap(({ resource, id }) =>
        resource === name && id !== null ? [id] : [],
      );
      for (const { id } of await findReadable(db, RESOURCES[name], scope, ids))
        readable.add(`${name}/${id}`);
    }
    const isVisible = ({ resource, id }: PlanConflict) =>
      (id !== null && resource !== null && readable.has(`${resource}/${id}`)) ||
      (isRequester && !isResourceName(resource));
    return (conflict) =>
      isVisible(conflict)
        ? conflict
        : { ...conflict, message: 'conflicts with another record', resource: null, id: null };
  }

  /** Labels of the existing records that effects refer to. New ones are effects themselves. */
  async function loadLabels(scope: Scope, { plan }: ApprovalData): Promise<Map<string, string>> {
    const wanted = new Map<ResourceName, Set<string>>();
    for (const { resource, changes } of plan?.effects ?? []) {
      for (const { field, before, after } of changes) {
        const target = RESOURCES[resource].fields[field]?.reference;
        for (const id of [before, after])
          if (target !== undefined && typeof id === 'string')
            wanted.set(target, (wanted.get(target) ?? new Set()).add(id));
      }
    }
    const labels = new Map<string, string>();
    for (const [name, ids] of wanted)
      for (const row of await findReadable(db, RESOURCES[name], scope, [...ids]))
        labels.set(row.id, labelOf(RESOURCES[name], row));
    return labels;
  }

  return {
    /** Loads the details. With `evaluate`, also whether the request could be executed now. */
    async load(caller: Caller, view: ApprovalView, evaluate: boolean): Promise<ApprovalDetails> {
      const { approval, assignees } = view;
      const scope = access.scope(caller, 'inventory:read');
      const isOpen = approval.status === 'pending' || approval.execution === 'queued';
      const [roles, decisions, comments, blocker, labels] = await Promise.all([
        findRoles(db, assignees.roleIds),
        decisionsOf(db, approval.id),
        commentsOf(db, approval.id),
        evaluate && isOpen && approval.jobType !== null ? findBlocker(approval) : null,
        loadLabels(scope, approval),
      ]);
      const involved = [
        approval.createdBy,
        ...(approval.closedBy === null ? [] : [approval.closedBy]),
        ...[...decisions, ...comments].map(({ actorId }) => actorId),
      ];
      const accounts = await findHolders(
        db,
        [...new Set([...assignees.userIds, ...involved])],
        'workflow:approve',
        scopeOfApproval(approval),
      );
      const byId = new Map(accounts.map((account) => [account.id, account]));
      return {
        ...view,
        decisions,
        comments,
        blocker,
        labels,
        people: byId,
        canSeePlan:
          view.isRequester || view.refusal === null || covers(scope, scopeOfApproval(approval)),
        deciders: {
          users: assignees.userIds.map((id): AssignedUser => {
            const account = byId.get(id);
            const reason = refusalReason(account ?? gatewayPerson(id), view, decisions);
            return {
              id,
              username: account?.username ?? null,
              displayName: account?.displayName ?? null,
              mayDecide: reason === null,
              reason,
            };
          }),
          roles: [...roles.values()],
        },
        canSeeEffect: effectVisibility(scope, view),
        redactConflict: await conflictRedaction(scope, view, [
          ...(blocker?.difference?.conflicts ?? []),
          ...(approval.difference?.conflicts ?? []),
        ]),
      };
    },
  };
}
