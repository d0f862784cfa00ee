import { randomBytes } from 'node:crypto';
import { findHolders, findRoles } from '../db/access/access.ts';
import { namesOf } from '../db/approvals/approvals.ts';
import type { Commit } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { Approval, ApprovalAssignee } from '../db/models/Approval.ts';
import {
  APPLY,
  contentHash,
  DEFAULT_EXPIRY_MS,
  isSamePerson,
  MAX_AHEAD_MS,
  MAX_PLANNED_EFFECTS,
  normalName,
  type ApprovalContent,
} from '../domain/approvals/approvals.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { AppError, invalidField, invalidFields, type FieldError } from '../domain/shared/errors.ts';
import { freeze, type FrozenPlan } from '../domain/inventory/frozenPlan.ts';
import { isValid, type Mutation, type Planned } from '../domain/inventory/planning.ts';
import { permissionsFor } from '../domain/jobType.ts';
import { contains, PLATFORM, type Place } from '../domain/access/scope.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import { startApproval, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import { approvalEvent, approvalSubject, approvalView } from './approvals/approvalAudit.ts';
import type { InventoryWrites } from './inventory/writes.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { authorityOf } from './access/rights.ts';
import { resolveTarget } from './target.ts';

export type ApprovalRequests = ReturnType<typeof createApprovalRequests>;

/** What somebody asks for. Without `jobType` a change is applied, and without a change nothing runs. */
export type ApprovalRequest = {
  type: string;
  title: string;
  payload: Record<string, unknown>;
  assignedUserIds: string[];
  assignedRoleIds: string[];
  tenantId?: string;
  siteId?: string;
  deviceId?: string;
  jobType?: string;
  jobPayload?: Record<string, unknown>;
  mutations?: Mutation[];
  requiredApprovals?: number;
  expiresAt?: Date;
  executeAt?: Date;
};

/** A request that was made, or a change that is not valid, with which there is none. */
export type Requested = { approval: Approval } | { refused: Planned[] };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  ids: Ids;
  clock: Clock;
  jobTypes: JobTypes;
  writes: InventoryWrites;
  /** How soon the reconciler looks after a new request, in milliseconds. */
  graceMs: number;
  heartbeatMs: number;
};

const wrong = (pointer: string, code: string, message: string): FieldError => ({
  in: 'body',
  pointer,
  code,
  message,
});

/** Makes requests: everything that will count later is checked, planned and frozen first. */
export function createApprovalRequests({
  db,
  commit,
  access,
  ids,
  clock,
  jobTypes,
  writes,
  graceMs,
  heartbeatMs,
}: Deps) {
  async function placeOf(
    caller: Caller,
    { tenantId, siteId, deviceId }: ApprovalRequest,
  ): Promise<Place> {
    const narrow = siteId !== undefined || deviceId !== undefined;
    const target = {
      ...(narrow
        ? tenantId !== undefined && { tenantId }
        : { tenantId: tenantId ?? caller.tenantId }),
      ...(siteId !== undefined && { siteId }),
      ...(deviceId !== undefined && { deviceId }),
    };
    return (await resolveTarget(db, target, access.scope(caller, 'workflow:write'), 'body')).place;
  }

  async function assigneeErrors(
    names: readonly string[],
    { assignedUserIds, assignedRoleIds, requiredApprovals = 1 }: ApprovalRequest,
    place: Place,
  ): Promise<FieldError[]> {
    const [users, roles] = [
      await findHolders(db, assignedUserIds, 'workflow:approve', place),
      await findRoles(db, assignedRoleIds),
    ];
    const known = new Set(users.filter(({ enabled }) => enabled).map(({ id }) => id));
    const errors = [
      ...assignedUserIds.flatMap((id, i) =>
        known.has(id)
          ? []
          : [wrong(`/assignedUserIds/${i}`, 'not_found', `there is no active user with id ${id}`)],
      ),
      ...assignedRoleIds.flatMap((id, i) =>
        roles.has(id)
          ? []
          : [wrong(`/assignedRoleIds/${i}`, 'not_found', `there is no role with id ${id}`)],
      ),
    ];
    if (errors.length > 0 || assignedRoleIds.length > 0) return errors;
    const others = users.filter(
      ({ id, username, holds }) => holds && !isSamePerson(names, [id, username].map(normalName)),
    );
    if (others.length >= requiredApprovals) return [];
    return [
      wrong(
        '/assignedUserIds',
        'too_few',
        `names ${others.length} besides you who hold workflow:approve there, and ${requiredApprovals} must approve`,
      ),
    ];
  }

  function timeErrors({ expiresAt, executeAt }: ApprovalRequest, now: Date): FieldError[] {
    return Object.entries({ expiresAt, executeAt }).flatMap(([field, at]) => {
      if (!at) return [];
      if (at <= now) return [wrong(`/${field}`, 'past', 'must be in the future')];
      return at.getTime() > now.getTime() + MAX_AHEAD_MS
        ? [wrong(`/${field}`, 'too_far', 'must be within a year')]
        : [];
    });
  }

  /** What runs when it is approved. */
  async function bind(
    at: Caller,
    { jobType, jobPayload, mutations, executeAt }: ApprovalRequest,
  ): Promise<Pick<ApprovalContent, 'jobType' | 'jobPayload'>> {
    if (jobType === undefined && jobPayload !== undefined)
      throw invalidField('body', '/jobPayload', 'one_of', 'needs a jobType');
    const applied = mutations !== undefined && (jobType === undefined || jobType === APPLY);
    if (applied && jobPayload !== undefined)
      throw invalidField('body', '/jobPayload', 'one_of', 'is the change in validationRequest');
    if (applied) return { jobType: APPLY, jobPayload: null };
    if (jobType === APPLY)
      throw invalidField(
        'body',
        '/validationRequest',
        'required',
        `is required for jobs of the type ${APPLY}`,
      );
    if (jobType === undefined && executeAt)
      throw invalidField(
        'body',
        '/executeAt',
        'one_of',
        'needs something that runs: a jobType or a validationRequest',
      );
    if (jobType === undefined) return { jobType: null, jobPayload: null };
    const type = jobTypes.getDirect(jobType, '/jobType');
    for (const permission of permissionsFor(type))
      await access.require(at, permission, { tenantId: at.tenantId });
    const payload = jobPayload ?? {};
    jobTypes.checkPayload(type, payload, '/jobPayload');
    return { jobType, jobPayload: payload };
  }

  /** What a change would do; null when it is not valid. */
  async function plan(
    at: Caller,
    place: Place,
    mutations: readonly Mutation[],
  ): Promise<{ planned: Planned[]; plan: FrozenPlan | null }> {
    const outcome = await writes.rehearse(at, mutations);
    await writes.requireRights(at, outcome.planned);
    if (!outcome.planned.every(isValid)) return { planned: outcome.planned, plan: null };
    const frozen = freeze(outcome);
    if (frozen.effects.length === 0)
      throw invalidField('body', '/validationRequest', 'nothing_changes', 'would change nothing');
    if (frozen.effects.length > MAX_PLANNED_EFFECTS)
      throw new AppError(
        'limit_reached',
        `The change concerns ${frozen.effects.length} records; a request may concern ${MAX_PLANNED_EFFECTS}.`,
      );
    const outside = frozen.places.find((each) => !contains(place, each));
    if (outside)
      throw invalidField(
        'body',
        '/tenantId',
        'outside',
        `the change also concerns ${outside.tenantId === PLATFORM ? 'the platform' : `tenant ${outside.tenantId}`}, outside the place of the request`,
      );
    return { planned: outcome.planned, plan: frozen };
  }

  return {
    /**
     * Makes a request that waits for its decision. Errors: `permission_denied` (`workflow:write`, and what is asked for),
     * `invalid_request`, `limit_reached`.
     */
    async create(caller: Caller, request: ApprovalRequest): Promise<Requested> {
      const place = await placeOf(caller, request);
      await access.require(caller, 'workflow:write', place);
      const at = { ...caller, tenantId: place.tenantId };
      const names = (await namesOf(db, [caller.actorId]))(caller.actorId);
      const errors = [
        ...timeErrors(request, clock.now()),
        ...(await assigneeErrors(names, request, place)),
      ];
      if (errors.length > 0) throw invalidFields(errors);
      const binding = await bind(at, request);
      const { mutations = null } = request;
      const { planned, plan: frozen } = mutations
        ? await plan(at, place, mutations)
        : { planned: [], plan: null };
      if (mutations && !frozen) return { refused: planned };

      const { type, title, payload, requiredApprovals = 1, executeAt = null } = request;
      const content: ApprovalContent = {
        type,
        title,
        payload,
        tenantId: place.tenantId,
        siteId: place.siteId ?? null,
        deviceId: place.deviceId ?? null,
        createdBy: caller.actorId,
        ...binding,
        mutations,
        plan: frozen,
        requiredApprovals,
        executeAt,
      };
      const contentKey = randomBytes(32).toString('base64');
      return commit(at, (work) => {
        const { now } = work;
        const approval = work.insert(Approval, {
          id: ids.next('apr'),
          ...content,
          mutations: mutations && [...mutations],
          status: 'pending',
          execution: 'none',
          approvalCount: 0,
          contentKey,
          contentHash: contentHash(contentKey, content),
          expiresAt:
            request.expiresAt ??
            new Date(Math.min(now.getTime() + DEFAULT_EXPIRY_MS, executeAt?.getTime() ?? Infinity)),
          reminders: 0,
          jobId: null,
          error: null,
          difference: null,
          requesterNames: names,
          authority: authorityOf(caller),
          closedBy: null,
          closeComment: null,
          closedAt: null,
          executedAt: null,
          checkAt: new Date(now.getTime() + graceMs),
          createdAt: now,
          updatedAt: now,
          version: 1,
        } as Partial<Approval>);
        for (const assigneeId of request.assignedUserIds)
          work.insert(ApprovalAssignee, { approvalId: approval.id, kind: 'user', assigneeId });
        for (const assigneeId of request.assignedRoleIds)
          work.insert(ApprovalAssignee, { approvalId: approval.id, kind: 'role', assigneeId });
        const { assignedUserIds, assignedRoleIds } = request;
        work.audit('workflow.create', approvalSubject(approval), {
          after: { ...approvalView(approval), assignedUserIds, assignedRoleIds },
        });
        work.emit('workflow.created', approvalSubject(approval), {
          ...approvalEvent(approval),
          assignedUserIds,
          assignedRoleIds,
        });
        work.dispatch(startApproval(approval, heartbeatMs));
        return { approval };
      });
    },
  };
}
