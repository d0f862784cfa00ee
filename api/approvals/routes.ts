import { Type } from 'typebox';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ApprovalDetailsLoader } from '../../services/approvals/details.ts';
import type { ApprovalRequest } from '../../services/approvals/approvalRequest.ts';
import type { ApprovalRequests } from '../../services/approvals/requests.ts';
import type { Approvals } from '../../services/approvals/approvals.ts';
import type { Deciders } from '../../services/approvals/deciders.ts';
import type { ApprovalView } from '../../services/approvals/views.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { created, ok, type HttpResponse } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { readMutations } from '../inventory/mutations.ts';
import type { Preferences } from '../http/prefer.ts';
import { Problem } from '../http/problem.ts';
import { parseTime } from '../http/queryTime.ts';
import { route, type Route } from '../http/route.ts';
import { approvalPresenter } from './presenter.ts';
import { validationAnswer } from '../inventory/validationAnswer.ts';
import {
  ApprovalBody,
  APPROVALS,
  ApprovalRecord,
  CancelBody,
  CommentBody,
  DECIDERS,
  DecisionBody,
} from './schemas.ts';
import { Id } from '../http/schemas.ts';
import { ValidationResult, ValidationResults } from '../inventory/schemas.ts';

const tag = 'Workflows';
const ApprovalParams = Type.Object({ id: Id('apr') }, { additionalProperties: false });

/** An invalid change is answered like its validation. Any other error is a problem. */
const InvalidChange = Type.Union([Problem, ValidationResult, ValidationResults], {
  title: 'InvalidChange',
});

const VISIBILITY =
  'you see requests that you created, may decide on or may read with workflow:read';

const EXAMPLE: ApprovalBody = {
  type: 'change',
  title: 'Prefix for the new hall',
  payload: { ticket: 'CHG-1042' },
  assignedUserIds: [],
  assignedRoleIds: ['approver'],
  validationRequest: {
    resource: 'prefixes',
    operation: 'create',
    record: { cidr: '172.28.0.0/16' },
  },
};

type Deps = {
  approvals: {
    approvals: Approvals;
    requests: ApprovalRequests;
    details: ApprovalDetailsLoader;
    deciders: Deciders;
  };
  jobTypes: JobTypes;
};

/** Approval requests: creating, reading, deciding, cancelling and commenting. */
export function approvalRoutes({
  approvals: { approvals, requests, details, deciders },
  jobTypes,
}: Deps): Route[] {
  const present = approvalPresenter(jobTypes);

  /** The details of a request. With a signal, also whether it could be executed now. */
  const detailsOf = async (
    caller: Caller,
    view: ApprovalView,
    evaluation: AbortSignal | null,
  ): Promise<ApprovalRecord> => present.record(await details.load(caller, view, evaluation));

  /** The response to an action on a request. */
  async function answerWith(
    caller: Caller,
    id: string,
    actedWith?: Permission,
  ): Promise<HttpResponse> {
    const view = await approvals.find(caller, id, actedWith);
    return ok(await detailsOf(caller, view, null));
  }

  async function createdAnswer(caller: Caller, id: string): Promise<HttpResponse> {
    const view = await approvals.find(caller, id);
    return created(`/api/workflows/${id}`, await detailsOf(caller, view, null));
  }

  type WaitingRequest = { caller: Caller; prefer: Preferences; signal: AbortSignal };

  async function answerWhenFinished(
    { caller, prefer: { waitMs }, signal }: WaitingRequest,
    id: string,
    evaluate: boolean,
  ): Promise<HttpResponse> {
    const view =
      waitMs === 0
        ? await approvals.find(caller, id)
        : await approvals.findWhenFinished(caller, id, { waitMs, signal, decided: !evaluate });
    return ok(await detailsOf(caller, view, evaluate ? signal : null));
  }

  const decisionRoute = (
    verb: 'approve' | 'reject',
    outcome: 'approved' | 'rejected',
    operationId: string,
    summary: string,
  ): Route =>
    route({
      method: 'POST',
      path: `/api/workflows/{id}/${verb}`,
      tag,
      permission: 'workflow:approve',
      permissionCheckedInHandler: true,
      operationId,
      summary,
      example: { comment: 'As discussed in CHG-1042' },
      params: ApprovalParams,
      body: DecisionBody,
      responses: { 200: ApprovalRecord },
      headers: ['Prefer', 'If-Match'],
      replayResponse: (caller, id) => answerWith(caller, id),
      handle: async (request) => {
        const { caller, params, body, ifMatch } = request;
        await approvals.decide(caller, params.id, outcome, {
          ...body,
          version: expectedVersion(ifMatch),
        });
        return answerWhenFinished(request, params.id, false);
      },
    });

  return [
    route({
      method: 'GET',
      path: '/api/workflows',
      tag,
      signedIn: VISIBILITY,
      tokenPermissions: ['workflow:read', 'workflow:write', 'workflow:approve'],
      operationId: 'listWorkflows',
      summary: 'List approval requests, newest first, with counts by status',
      query: APPROVALS.query,
      responses: { 200: APPROVALS.schema },
      handle: ({ caller, query }) =>
        APPROVALS.respond(
          query,
          (request, filter) => approvals.list(caller, filter, request),
          (view) => present.summary(view, caller),
          ({ counts, countsExact }) => ({ counts, countsExact }),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/workflows/deciders',
      tag,
      permission: 'workflow:write',
      operationId: 'listDeciders',
      summary: 'List who could decide on a request, for those who ask',
      description:
        'Roles that include the permission to decide, and the accounts of the tenant of the request that hold one there. At the platform, accounts of all tenants.',
      query: DECIDERS.query,
      responses: { 200: DECIDERS.schema },
      handle: ({ caller, query }) =>
        DECIDERS.respond(
          query,
          (request, asked) => deciders.list(caller, asked, request),
          ({ id, username, displayName, provider }) => ({ id, username, displayName, provider }),
          ({ roles }) => ({ roles }),
        ),
    }),
    route({
      method: 'POST',
      path: '/api/workflows',
      tag,
      permission: 'workflow:write',
      operationId: 'createWorkflow',
      summary: 'Request approval of a decision, a job or an inventory change',
      body: ApprovalBody,
      example: EXAMPLE,
      responses: { 201: ApprovalRecord, 400: InvalidChange, 409: InvalidChange },
      replayResponse: createdAnswer,
      handle: async ({ caller, body, signal }) => {
        const { isBatch, request } = toApprovalRequest(body);
        const result = await requests.create(caller, request, signal);
        if ('approval' in result) return createdAnswer(caller, result.approval.id);
        return validationAnswer(caller.actorId, result.invalid, { isBatch, signal });
      },
    }),
    route({
      method: 'GET',
      path: '/api/workflows/{id}',
      tag,
      signedIn: VISIBILITY,
      tokenPermissions: ['workflow:read', 'workflow:write', 'workflow:approve'],
      operationId: 'getWorkflow',
      summary: 'Get an approval request with everything that a decision needs',
      params: ApprovalParams,
      responses: { 200: ApprovalRecord },
      headers: ['Prefer'],
      handle: (request) => answerWhenFinished(request, request.params.id, true),
    }),
    decisionRoute('approve', 'approved', 'approveWorkflow', 'Approve a request'),
    decisionRoute('reject', 'rejected', 'rejectWorkflow', 'Reject a request'),
    route({
      method: 'POST',
      path: '/api/workflows/{id}/cancel',
      tag,
      signedIn: 'only for the requester and, between approval and job start, for deciders',
      tokenPermissions: ['workflow:write', 'workflow:approve'],
      operationId: 'cancelWorkflow',
      summary: 'Cancel a request before its job starts',
      example: { comment: 'No longer needed' },
      params: ApprovalParams,
      body: CancelBody,
      responses: { 200: ApprovalRecord },
      headers: ['If-Match'],
      replayResponse: (caller, id) => answerWith(caller, id),
      handle: async ({ caller, params, body, ifMatch }) => {
        await approvals.cancel(caller, params.id, { ...body, version: expectedVersion(ifMatch) });
        return answerWith(caller, params.id);
      },
    }),
    route({
      method: 'POST',
      path: '/api/workflows/{id}/comments',
      tag,
      signedIn:
        'only for the requester, for deciders and with workflow:write at the scope of the request',
      tokenPermissions: ['workflow:write', 'workflow:approve'],
      operationId: 'createWorkflowComment',
      summary: 'Comment on a request',
      example: { text: 'Which rack is this for?' },
      params: ApprovalParams,
      body: CommentBody,
      responses: { 200: ApprovalRecord },
      replayResponse: (caller, id) => answerWith(caller, id, 'workflow:write'),
      handle: async ({ caller, params, body }) => {
        await approvals.comment(caller, params.id, body.text);
        return answerWith(caller, params.id, 'workflow:write');
      },
    }),
  ];
}

function toApprovalRequest({ validationRequest, expiresAt, executeAt, ...rest }: ApprovalBody): {
  isBatch: boolean;
  request: ApprovalRequest;
} {
  const change =
    validationRequest === undefined
      ? undefined
      : readMutations(validationRequest, '/validationRequest');
  return {
    isBatch: change?.isBatch ?? false,
    request: {
      ...rest,
      ...(change && { mutations: change.mutations }),
      ...(expiresAt !== undefined && { expiresAt: parseTime('expiresAt', expiresAt, 'body') }),
      ...(executeAt !== undefined && { executeAt: parseTime('executeAt', executeAt, 'body') }),
    },
  };
}
