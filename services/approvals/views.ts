import {
  assigneesOf,
  countApprovals,
  decisionsBy,
  listApprovals,
  type ApprovalFilter,
  type ApprovalReader,
  type Assignees,
} from '../../db/approvals/approvals.ts';
import { knownNamesOf } from '../../db/approvals/names.ts';
import type { Knex } from '../../db/core/knex.ts';
import { jobMarksOf } from '../../db/jobs/purgedJobs.ts';
import { Approval } from '../../db/models/Approval.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { covers, scopeOfRole, type Scope } from '../../domain/access/scope.ts';
import {
  refusalToDecide,
  type ApprovalStatus,
  type DecisionRefusal,
} from '../../domain/approvals/approvals.ts';
import { isSamePerson, namesMeaning, recordedNames } from '../../domain/approvals/names.ts';
import {
  scopeOfApproval,
  type ApprovalData,
  type DecisionData,
} from '../../domain/approvals/records.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import {
  authorKeyOf,
  hasWritten,
  storedAuthorKeyOf,
  storedWriterKeyOf,
  type Caller,
} from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';

/** A request as a caller sees it. */
export type ApprovalView = JobMark & {
  approval: ApprovalData;
  assignees: Assignees;
  /** Why the caller may not decide; null if the caller may. */
  refusal: DecisionRefusal | null;
  /** The decision that the caller made already. */
  priorDecision: DecisionData | undefined;
  isRequester: boolean;
  /** The caller has sent the content: a requester, but with an API token only what that has requested. */
  hasSentContent: boolean;
  /** The names of the caller as a decision on this request records them. */
  viewerNames: string[];
};

export type ApprovalList = ListAnswer<ApprovalView> & {
  counts: Record<ApprovalStatus, number>;
  countsExact: boolean;
};

const NO_COUNTS: Record<ApprovalStatus, number> = {
  pending: 0,
  approved: 0,
  rejected: 0,
  expired: 0,
  cancelled: 0,
};

/** Reads requests as callers see them. */
export function createApprovalViews({ db, access }: { db: Knex; access: Access }) {
  /** A requester sees their requests without a permission, but not with every API token. */
  const ownScopeOf = (caller: Caller): Scope | undefined =>
    caller.token
      ? access.scope(caller, 'workflow:read', 'workflow:write', 'workflow:approve')
      : undefined;

  async function listReaderFor(caller: Caller): Promise<ApprovalReader> {
    const roleIds = [...new Set(caller.rights.grants.map(({ role }) => role.id))];
    return {
      actorId: caller.actorId,
      authorKey: authorKeyOf(caller),
      ownScope: ownScopeOf(caller),
      names: namesMeaning((await knownNamesOf(db, [caller]))(caller)),
      read: access.scope(caller, 'workflow:read'),
      approve: access.scope(caller, 'workflow:approve'),
      roles: roleIds.map((id) => [id, scopeOfRole(caller.rights, id)] as const),
    };
  }

  /** Builds the view of each request, with the current names of the caller and the requester. */
  async function toViews(
    caller: Caller,
    approvals: readonly ApprovalData[],
    executor: Knex = db,
  ): Promise<ApprovalView[]> {
    const ids = approvals.map(({ id }) => id);
    const { actorId } = caller;
    const namesFor = await knownNamesOf(
      executor,
      approvals.flatMap(({ createdBy, tenantId }) => [
        { actorId, tenantId },
        { actorId: createdBy, tenantId },
      ]),
    );
    const namesAt = (tenantId: string) => namesFor({ actorId, tenantId });
    const [assigneesFor, decisions] = [
      await assigneesOf(executor, ids),
      await decisionsBy(
        executor,
        ids,
        namesMeaning(approvals.flatMap(({ tenantId }) => namesAt(tenantId))),
      ),
    ];
    const markOf = await jobMarksOf(executor, approvals);
    return approvals.map((approval) => {
      const { id, tenantId, createdBy } = approval;
      const assignees = assigneesFor(id);
      const names = namesMeaning(namesAt(tenantId));
      const requesterNames = [
        ...approval.requesterNames,
        ...recordedNames(namesFor({ actorId: createdBy, tenantId }), tenantId),
      ];
      const refusal = refusalToDecide(
        { resourceScope: scopeOfApproval(approval), requesterNames, ...assignees },
        { actorId, names, rights: caller.rights },
      );
      return {
        approval,
        ...markOf(approval),
        assignees,
        refusal,
        viewerNames: recordedNames(namesAt(tenantId), tenantId),
        priorDecision: decisions.find(
          ({ approvalId, actorNames }) => approvalId === id && isSamePerson(actorNames, names),
        ),
        isRequester: storedAuthorKeyOf(approval.authority) === authorKeyOf(caller),
        hasSentContent: hasWritten(caller, storedWriterKeyOf(approval.authority)),
      };
    });
  }

  /**
   * Finds a request that the caller may see: as its requester, as one of its deciders, with
   * `workflow:read`, or with the permission `actsWith` that the caller acts with. Error:
   * `not_found`.
   */
  async function find(
    caller: Caller,
    id: string,
    actsWith: Permission = 'workflow:read',
  ): Promise<ApprovalView> {
    const approval = await Approval.query(db).findById(id);
    const [view] = await toViews(caller, approval ? [approval] : []);
    const ownScope = ownScopeOf(caller);
    const isVisible =
      view &&
      (view.refusal === null ||
        (view.isRequester && (!ownScope || covers(ownScope, scopeOfApproval(view.approval)))) ||
        covers(access.scope(caller, 'workflow:read', actsWith), scopeOfApproval(view.approval)));
    if (!isVisible) throw notFound('approval request', id);
    return view;
  }

  /**
   * Lists the requests that the caller created, may decide on or may read, with the number of
   * requests per status.
   */
  async function list(
    caller: Caller,
    filter: ApprovalFilter,
    request: ListRequest,
  ): Promise<ApprovalList> {
    const reader = await listReaderFor(caller);
    const answer = await listApprovals(db, reader, filter, request);
    const { byStatus, exact } = await countApprovals(db, reader, filter, request.where);
    return {
      ...withItems(answer, await toViews(caller, answer.items)),
      counts: { ...NO_COUNTS, ...byStatus },
      countsExact: exact,
    };
  }

  return { find, list, toViews, readerFor: listReaderFor };
}
