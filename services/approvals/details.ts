import { findHolders, findRoles, type Holder } from '../../db/access/access.ts';
import { commentsOf, decisionsOf } from '../../db/approvals/approvals.ts';
import { findReadable } from '../../db/inventory/records.ts';
import type { Knex } from '../../db/core/knex.ts';
import { knownNamesOf } from '../../db/approvals/names.ts';
import { isSamePerson, namesMeaning } from '../../domain/approvals/names.ts';
import {
  scopeOfApproval,
  type ApprovalData,
  type CommentData,
  type DecisionData,
} from '../../domain/approvals/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { FrozenEffect } from '../../domain/inventory/frozenPlan.ts';
import { externalReadersOf } from '../../domain/inventory/externalReaders.ts';
import { isResourceName, type ResourceName } from '../../domain/inventory/names.ts';
import type { PlanConflict } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { labelOf } from '../../domain/inventory/ownership.ts';
import type { Role } from '../../domain/access/roles.ts';
import { contains, covers, isEmpty, type Scope } from '../../domain/access/scope.ts';
import type { Log } from '../../platform/log.ts';
import type { Access } from '../access/access.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { ApprovalChecks, Blocker } from './checks.ts';
import { createEvaluations } from './evaluations.ts';
import type { ApprovalView } from './views.ts';

export type ApprovalDetailsLoader = ReturnType<typeof createApprovalDetailsLoader>;

/**
 * An assigned user, and whether the user may decide. `reason` says why not. The names are null for an
 * account that the reader may not know, and for a person whom a gateway authenticates. What such a
 * person may do is known only when they call.
 */
export type AssignedUser = Pick<Holder, 'id'> & {
  username: string | null;
  displayName: string | null;
  provider: string | null;
  mayDecide: boolean;
  reason: string | null;
};

/** A request with everything that a decision needs, as its reader may see it. */
export type ApprovalDetails = ApprovalView & {
  deciders: { users: AssignedUser[]; roles: Role[] };
  decisions: DecisionData[];
  comments: CommentData[];
  /** The accounts of the users involved whom the reader may know, by id. */
  people: ReadonlyMap<string, Pick<Holder, 'username' | 'displayName' | 'provider'>>;
  /** Labels of the records that effects refer to, by id, as far as the reader may read them. */
  labels: ReadonlyMap<string, string>;
  /** True if the reader may see the requested mutations. */
  canSeeMutations: boolean;
  /** True if the reader may know the warnings of the plan, and how many records it changes. */
  canSeePlan: boolean;
  /** True if the reader may see an effect. */
  canSeeEffect(effect: FrozenEffect): boolean;
  /** Redacts a conflict: it was found with the rights of the requester. */
  redactConflict(conflict: PlanConflict): PlanConflict;
  /** Why the request cannot be executed now; null if it can, is finished, or was not evaluated. */
  blocker: Blocker | null;
  /** The name of what the bound job is about, if the reader may know it. */
  jobTargetName: string | null;
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

/** Why an assigned user may not decide. `names` mean the user; gateways have no account. */
function refusalReason(
  id: string,
  names: readonly string[],
  account: Pick<Holder, 'enabled' | 'holds'> | undefined,
  { approval }: ApprovalView,
  decisions: readonly DecisionData[],
): string | null {
  if (
    decisions.some(({ actorId, actorNames }) => actorId === id || isSamePerson(actorNames, names))
  )
    return 'already_decided';
  if (approval.status !== 'pending') return approval.status;
  if (isSamePerson(approval.requesterNames, names)) return 'self_approval';
  if (!account) return null;
  if (!account.enabled) return 'disabled';
  return account.holds ? null : 'permission_denied';
}

type Deps = {
  db: Knex;
  access: Access;
  jobTargets: JobTargets;
  checks: ApprovalChecks;
  log: Log;
};

/** Loads the details of a request for its reader. */
export function createApprovalDetailsLoader({ db, access, jobTargets, checks, log }: Deps) {
  const evaluations = createEvaluations({ checks, log });

  async function conflictRedaction(
    caller: Caller,
    { hasSentContent, approval }: ApprovalView,
    conflicts: readonly PlanConflict[],
  ): Promise<ApprovalDetails['redactConflict']> {
    const scope = access.scope(caller, 'inventory:read');
    const readable = new Set<string>();
    for (const name of new Set(conflicts.map(({ resource }) => resource).filter(isResourceName))) {
      const ids = conflicts.flatMap(({ resource, id }) =>
        resource === name && id !== null ? [id] : [],
      );
      for (const { id } of await findReadable(db, RESOURCES[name], scope, ids))
        readable.add(`${name}/${id}`);
    }
    const isVisible = ({ resource, id }: PlanConflict) => {
      if (resource === null) return hasSentContent;
      if (isResourceName(resource)) return id !== null && readable.has(`${resource}/${id}`);
      return covers(
        access.scope(caller, ...externalReadersOf(resource)),
        scopeOfApproval(approval),
      );
    };
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

  /** The accounts of all users involved, those whom the reader may know, and why others may not decide. */
  async function loadPeople(
    caller: Caller,
    view: ApprovalView,
    { decisions, comments }: Pick<ApprovalDetails, 'decisions' | 'comments'>,
  ): Promise<{ people: Map<string, Holder>; users: AssignedUser[] }> {
    const { approval, assignees } = view;
    const { tenantId, createdBy, closedBy } = approval;
    // Their acts are shown, so they are shown by name.
    const acting = new Set([
      caller.actorId,
      createdBy,
      ...(closedBy === null ? [] : [closedBy]),
      ...[...decisions, ...comments].map(({ actorId }) => actorId),
    ]);
    const ids = [...new Set([...assignees.userIds, ...acting])];
    const assigned = assignees.userIds.map((actorId) => ({ actorId, tenantId }));
    const [accounts, namesFor] = await Promise.all([
      findHolders(db, ids, 'workflow:approve', scopeOfApproval(approval)),
      knownNamesOf(db, assigned),
    ]);
    const byId = new Map(accounts.map((account) => [account.id, account]));
    // Who may ask there finds the accounts that could decide, and has chosen them by name.
    const asks = access.scope(caller, 'workflow:write');
    const mayFind = (account: Holder) =>
      account.enabled &&
      account.holds &&
      covers(asks, scopeOfApproval(approval)) &&
      (asks.kind === 'everywhere' || account.tenantId === tenantId);
    const isKnown = (account: Holder) =>
      acting.has(account.id) ||
      mayFind(account) ||
      covers(access.scope(caller, 'user:read'), account);
    const people = new Map([...byId].filter(([, account]) => isKnown(account)));
    const users = assigned.map((actor): AssignedUser => {
      const id = actor.actorId;
      const [account, known] = [byId.get(id), people.get(id)];
      const names = namesMeaning(namesFor(actor));
      const reason = refusalReason(id, names, account, view, decisions);
      return {
        id,
        username: known?.username ?? null,
        displayName: known?.displayName ?? null,
        provider: known?.provider ?? null,
        mayDecide: reason === null,
        // Whether an account is disabled is for those who may read it.
        reason: reason === 'disabled' && !known ? 'permission_denied' : reason,
      };
    });
    return { people, users };
  }

  /** Who may read the target knows its name, and who may decide on the request. */
  async function targetName(caller: Caller, view: ApprovalView): Promise<string | null> {
    const { tenantId, jobTarget } = view.approval;
    if (!jobTarget) return null;
    const name = await jobTargets.nameOf(caller, jobTarget);
    return name ?? (view.refusal === null ? jobTargets.nameIn(tenantId, jobTarget) : null);
  }

  return {
    /**
     * Loads the details. With `evaluation`, also whether the request could be executed now; the
     * signal ends this.
     */
    async load(
      caller: Caller,
      view: ApprovalView,
      evaluation: AbortSignal | null,
    ): Promise<ApprovalDetails> {
      const { approval, assignees } = view;
      const scope = access.scope(caller, 'inventory:read');
      const isOpen = approval.status === 'pending' || approval.execution === 'queued';
      const [roles, decisions, comments, blocker, labels] = await Promise.all([
        findRoles(db, assignees.roleIds),
        decisionsOf(db, approval.id),
        commentsOf(db, approval.id),
        evaluation && isOpen && approval.jobType !== null
          ? evaluations.findBlocker(caller, approval, evaluation)
          : null,
        loadLabels(scope, approval),
      ]);
      const canSeePlan = view.refusal === null || covers(scope, scopeOfApproval(approval));
      const { people, users } = await loadPeople(caller, view, { decisions, comments });
      return {
        ...view,
        decisions,
        comments,
        blocker,
        labels,
        people,
        jobTargetName: await targetName(caller, view),
        canSeePlan,
        canSeeMutations: canSeePlan || view.hasSentContent,
        deciders: { users, roles: [...roles.values()] },
        canSeeEffect: effectVisibility(scope, view),
        redactConflict: await conflictRedaction(caller, view, [
          ...(blocker?.difference?.conflicts ?? []),
          ...(approval.difference?.conflicts ?? []),
        ]),
      };
    },
  };
}
