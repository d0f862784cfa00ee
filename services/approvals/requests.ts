import { randomBytes } from 'node:crypto';
import { knownNamesOf } from '../../db/approvals/names.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Approval, ApprovalAssignee } from '../../db/models/Approval.ts';
import {
  INVENTORY_APPLY,
  contentHash,
  DEFAULT_EXPIRY_MS,
  MAX_PLAN_BYTES,
  MAX_PLANNED_EFFECTS,
  type ApprovalContent,
} from '../../domain/approvals/approvals.ts';
import { recordedNames } from '../../domain/approvals/names.ts';
import type { ApprovalData } from '../../domain/approvals/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, invalidFields } from '../../domain/shared/errors.ts';
import { findOutside, freezePlan, type FrozenPlan } from '../../domain/inventory/frozenPlan.ts';
import { isValid, type Mutation, type Planned } from '../../domain/inventory/planning.ts';
import { permissionsToCreate, type JobType } from '../../domain/jobs/jobType.ts';
import { scopeOfTarget, type TargetRef } from '../../domain/jobs/targets.ts';
import {
  contains,
  covers,
  describeResourceScope,
  PLATFORM,
  type ResourceScope,
} from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import { startApprovalTask } from '../../domain/dispatch/tasks.ts';
import type { Access } from '../access/access.ts';
import { approvalEventData, approvalSubject, approvalSnapshot } from './approvalAudit.ts';
import type { InventoryQuestions } from '../inventory/questions.ts';
import type { InventoryWrites } from '../inventory/writes.ts';
import type { JobReferences } from '../jobs/payloadReferences.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { authorityOf } from '../access/rights.ts';
import type { ApprovalRequest } from './approvalRequest.ts';
import { checkAssignees, checkTimes } from './requestChecks.ts';
import { requesterOf, resolveResourceScope } from '../access/resourceScope.ts';

export type ApprovalRequests = ReturnType<typeof createApprovalRequests>;

/** The created request, or the validation of an invalid change, for which no request is created. */
export type RequestResult = { approval: ApprovalData } | { invalid: Planned[] };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  jobTypes: JobTypes;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
  writes: InventoryWrites;
  questions: InventoryQuestions;
  /** How soon the reconciler checks a new request, in milliseconds. */
  graceMs: number;
  heartbeatMs: number;
};

/** The part of the content that is the bound job. */
type BoundJob = Pick<ApprovalContent, 'jobType' | 'jobPayload' | 'jobTarget' | 'typeDigest'>;

const NO_JOB: BoundJob = { jobType: null, jobPayload: null, jobTarget: null, typeDigest: null };

const TARGET = '/jobTarget';

/** Creates requests. Their content is checked, planned and frozen first. */
export function createApprovalRequests({
  db,
  commit,
  access,
  ids,
  jobTypes,
  jobTargets,
  jobReferences,
  writes,
  questions,
  graceMs,
  heartbeatMs,
}: Deps) {
  async function resolveScope(
    caller: Caller,
    { tenantId, siteId, deviceId }: ApprovalRequest,
  ): Promise<ResourceScope> {
    const isNarrow = siteId !== undefined || deviceId !== undefined;
    const target = {
      ...(isNarrow
        ? tenantId !== undefined && { tenantId }
        : { tenantId: tenantId ?? caller.tenantId }),
      ...(siteId !== undefined && { siteId }),
      ...(deviceId !== undefined && { deviceId }),
    };
    const requester = requesterOf(access, caller, 'workflow:write');
    return (await resolveResourceScope(db, target, requester, 'body')).resourceScope;
  }

  /** Determines the bound job. Errors: `invalid_request`, `permission_denied`. */
  async function bindJob(
    tenantCaller: Caller,
    resourceScope: ResourceScope,
    { jobType, jobPayload, jobTarget, mutations, executeAt }: ApprovalRequest,
  ): Promise<BoundJob> {
    if (jobType === undefined && jobPayload !== undefined)
      throw invalidField('body', '/jobPayload', 'one_of', 'needs a jobType');
    if (jobType === undefined && jobTarget)
      throw invalidField('body', '/jobTarget', 'one_of', 'needs a jobType');
    const appliesChange =
      mutations !== undefined && (jobType === undefined || jobType === INVENTORY_APPLY);
    if (appliesChange && jobPayload !== undefined)
      throw invalidField(
        'body',
        '/jobPayload',
        'one_of',
        'must be absent: the payload is the change in validationRequest',
      );
    if (appliesChange) {
      await access.requireTypeOfToken(tenantCaller, INVENTORY_APPLY);
      await jobTargets.resolve(tenantCaller, jobTypes.get(INVENTORY_APPLY), jobTarget, TARGET);
      return { ...NO_JOB, jobType: INVENTORY_APPLY };
    }
    if (jobType === INVENTORY_APPLY)
      throw invalidField(
        'body',
        '/validationRequest',
        'required',
        `is required for jobs of the type ${INVENTORY_APPLY}`,
      );
    if (jobType === undefined && executeAt)
      throw invalidField('body', '/executeAt', 'one_of', 'needs a jobType or a validationRequest');
    if (jobType === undefined) return NO_JOB;
    const payload = jobPayload ?? {};
    const request = { jobType, payload, jobTarget: jobTarget ?? null };
    await jobTypes.refreshUnknown(jobType);
    const type = await checkJob(tenantCaller, resourceScope, request);
    const typeDigest = type.lane === 'remote' ? type.digest : null;
    return { jobType, jobPayload: payload, jobTarget: request.jobTarget, typeDigest };
  }

  /** Errors: `invalid_request`, `permission_denied`. */
  async function checkJob(
    tenantCaller: Caller,
    resourceScope: ResourceScope,
    {
      jobType,
      payload,
      jobTarget,
    }: { jobType: string; payload: object; jobTarget: TargetRef | null },
  ): Promise<JobType> {
    const type = jobTypes.getPublic(jobType, '/jobType');
    const target = await jobTargets.resolve(tenantCaller, type, jobTarget, TARGET);
    const { tenantId } = tenantCaller;
    const scope = target ? scopeOfTarget(target) : { tenantId };
    if (target && (target.tenantId !== tenantId || !contains(resourceScope, scope)))
      throw invalidField(
        'body',
        `${TARGET}/id`,
        'outside_scope',
        `is outside ${describeResourceScope(resourceScope)}, the scope of the request`,
      );
    await access.requireJobType(tenantCaller, type, scope);
    for (const permission of permissionsToCreate(type))
      await access.require(tenantCaller, permission, scope);
    // What the installation lacks now may be there when the request is approved.
    await jobTypes.checkPayload(type, payload, tenantCaller, '/jobPayload');
    await jobReferences.check(tenantCaller, type, payload, '/jobPayload');
    return type;
  }

  /**
   * Plans a change; the plan is null if the change is invalid. Errors: `permission_denied`,
   * `limit_reached`, `invalid_request`.
   */
  async function planChange(
    tenantCaller: Caller,
    resourceScope: ResourceScope,
    mutations: readonly Mutation[],
    signal: AbortSignal,
  ): Promise<{ planned: Planned[]; plan: FrozenPlan | null }> {
    // Without any such permission, even the plan would show what exists.
    await access.requireAnywhere(tenantCaller, 'inventory:write');
    const dryRun = await questions.dryRun(tenantCaller, mutations, {
      holder: tenantCaller,
      signal,
    });
    await writes.assertPermissions(tenantCaller, dryRun.planned);
    if (!dryRun.planned.every(isValid)) {
      // With errors, permission was checked at the present scopes only. What else the plan found would
      // show what exists where the change would go.
      const visible = access.scope(tenantCaller, 'inventory:read', 'inventory:write');
      const isHidden =
        dryRun.planned.some(({ errors }) => errors.length > 0) && !covers(visible, resourceScope);
      const planned = isHidden
        ? dryRun.planned.map((each, i) => withoutFindings(each, mutations[i]))
        : dryRun.planned;
      return { planned, plan: null };
    }
    const frozen = freezePlan(dryRun);
    if (frozen.effects.length === 0)
      throw invalidField('body', '/validationRequest', 'no_changes', 'would change nothing');
    assertReadable(frozen);
    const outside = findOutside(resourceScope, frozen);
    if (outside)
      throw invalidField(
        'body',
        '/tenantId',
        'outside_scope',
        `the change also touches ${outside.tenantId === PLATFORM ? 'the platform' : `tenant ${outside.tenantId}`}, outside the scope of the request`,
      );
    return { planned: dryRun.planned, plan: frozen };
  }

  return {
    /**
     * Creates a pending request. The caller needs `workflow:write`, and the permissions of the
     * bound job or the change. Errors: `permission_denied`, `invalid_request`, `limit_reached`.
     */
    async create(
      caller: Caller,
      request: ApprovalRequest,
      signal: AbortSignal,
    ): Promise<RequestResult> {
      const resourceScope = await resolveScope(caller, request);
      await access.require(caller, 'workflow:write', resourceScope);
      const tenantCaller = { ...caller, tenantId: resourceScope.tenantId };
      const { tenantId } = resourceScope;
      const requester = { actorId: caller.actorId, tenantId };
      const requesterNames = recordedNames(
        (await knownNamesOf(db, [requester]))(requester),
        tenantId,
      );
      const errors = [
        ...checkTimes(request, new Date()),
        ...(await checkAssignees(
          db,
          {
            names: requesterNames,
            mayRead: (account) => access.holds(caller.rights, 'user:read', account),
          },
          request,
          resourceScope,
        )),
      ];
      if (errors.length > 0) throw invalidFields(errors);
      const binding = await bindJob(tenantCaller, resourceScope, request);
      const { mutations = null } = request;
      const { planned, plan: frozenPlan } = mutations
        ? await planChange(tenantCaller, resourceScope, mutations, signal)
        : { planned: [], plan: null };
      if (mutations && !frozenPlan) return { invalid: planned };

      const content: ApprovalContent = {
        ...contentOf(request, resourceScope),
        ...binding,
        createdBy: caller.actorId,
        mutations,
        plan: frozenPlan,
      };
      return commit(tenantCaller, (work) => {
        const approval = work.insert(Approval, {
          ...newApproval(content, request.expiresAt, work.now),
          id: ids.next('apr'),
          requesterNames,
          authority: authorityOf(caller),
          checkAt: new Date(work.now.getTime() + graceMs),
        } as Partial<Approval>);
        work.result(approval.id);
        insertAssignees(work, approval, request);
        work.dispatch(startApprovalTask(approval, heartbeatMs));
        return { approval };
      });
    },
  };
}

/** An invalid plan with its errors alone, and with the record as it was sent. */
const withoutFindings = (planned: Planned, mutation: Mutation | undefined): Planned => ({
  ...planned,
  candidateRecord: Object(mutation?.record) as object,
  conflicts: [],
  warnings: [],
  effects: [],
});

/** The part of the content that is copied from the request body. */
function contentOf(request: ApprovalRequest, scope: ResourceScope) {
  const { type, title, payload, requiredApprovals = 1, executeAt = null } = request;
  const { tenantId, siteId = null, deviceId = null } = scope;
  return { type, title, payload, tenantId, siteId, deviceId, requiredApprovals, executeAt };
}

/** The row of a new request, without its id, its requester and its next check. */
function newApproval(content: ApprovalContent, expiresAt: Date | undefined, now: Date) {
  const contentKey = randomBytes(32).toString('base64');
  const latest = content.executeAt?.getTime() ?? Infinity;
  return {
    ...content,
    mutations: content.mutations && [...content.mutations],
    status: 'pending' as const,
    execution: 'none' as const,
    approvalCount: 0,
    contentKey,
    contentHash: contentHash(contentKey, content),
    expiresAt: expiresAt ?? new Date(Math.min(now.getTime() + DEFAULT_EXPIRY_MS, latest)),
    reminders: 0,
    jobId: null,
    error: null,
    difference: null,
    closedBy: null,
    closeComment: null,
    closedAt: null,
    executedAt: null,
    createdAt: now,
    updatedAt: now,
    version: 1,
  };
}

/** Adds the assignees of a new request to a commit, with its audit entry and its event. */
function insertAssignees(
  work: Work,
  approval: ApprovalData,
  { assignedUserIds, assignedRoleIds }: ApprovalRequest,
): void {
  for (const assigneeId of assignedUserIds)
    work.insert(ApprovalAssignee, { approvalId: approval.id, kind: 'user', assigneeId });
  for (const assigneeId of assignedRoleIds)
    work.insert(ApprovalAssignee, { approvalId: approval.id, kind: 'role', assigneeId });
  const assigned = { assignedUserIds, assignedRoleIds };
  work.audit('workflow.create', approvalSubject(approval), {
    after: { ...approvalSnapshot(approval), ...assigned },
  });
  work.emit('workflow.created', approvalSubject(approval), {
    ...approvalEventData(approval),
    ...assigned,
  });
}

/** An approver reads the whole plan. Error: `limit_reached`. */
function assertReadable(plan: FrozenPlan): void {
  if (plan.effects.length > MAX_PLANNED_EFFECTS)
    throw new AppError(
      'limit_reached',
      `A request can change at most ${MAX_PLANNED_EFFECTS} records, with those that change as a consequence.`,
    );
  if (Buffer.byteLength(JSON.stringify(plan)) > MAX_PLAN_BYTES)
    throw new AppError(
      'limit_reached',
      `The plan of a request can have at most ${MAX_PLAN_BYTES / 1_048_576} MiB. Split it into smaller requests.`,
    );
}
