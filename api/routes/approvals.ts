import { crc32 } from 'node:zlib';
import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ApprovalPages } from '../../services/approvalPage.ts';
import type { ApprovalRequest, ApprovalRequests } from '../../services/approvalRequests.ts';
import type { Approvals, Seen } from '../../services/approvals.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { created, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { readMutations } from '../inventory/mutations.ts';
import { pageOf } from '../http/pagination.ts';
import type { Preferences } from '../http/prefer.ts';
import { Problem } from '../kit/problem.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { approvalPresenter } from '../presenters/approvals.ts';
import { validationView } from '../inventory/presenter.ts';
import {
  ApprovalBody,
  ApprovalList,
  ApprovalQuery,
  ApprovalRecord,
  CancelBody,
  CommentBody,
  DecisionBody,
} from '../approvals/schemas.ts';
import { Id } from '../http/schemas.ts';
import { ValidationResult, ValidationResults } from '../inventory/schemas.ts';

const area = 'Workflows';
const OneApproval = Type.Object({ id: Id('apr') }, { additionalProperties: false });

/** A change that is not valid is answered as its validation is; anything else is a problem. */
const Refused = Type.Union([Problem, ValidationResult, ValidationResults]);

const SEES = 'shows what you have requested, may decide about or may read with workflow:read';

type Deps = {
  approvals: { approvals: Approvals; requests: ApprovalRequests; pages: ApprovalPages };
  jobTypes: JobTypes;
};

/** Requests for approval, the decisions about them, and what comes of those. */
export function approvalRoutes({
  approvals: { approvals, requests, pages },
  jobTypes,
}: Deps): Route[] {
  const present = approvalPresenter(jobTypes);

  /** The page of a request; `planned` also says whether it would be carried out as the world is now. */
  async function page(
    caller: Caller,
    seen: Seen,
    planned: boolean,
  ): Promise<{ body: ApprovalRecord; headers: { etag: string } }> {
    const body = present.record(await pages.pageOf(caller, seen, planned));
    // What has changed since, and what was said, come without a new version.
    return { body, headers: { etag: etagOf(body.version, crc32(JSON.stringify(body))) } };
  }

  /** The answer to what was done to a request. */
  async function one(caller: Caller, id: string): Promise<Answer> {
    const { body, headers } = await page(caller, await approvals.find(caller, id), false);
    return ok(body, headers);
  }

  async function made(caller: Caller, id: string): Promise<Answer> {
    const { body, headers } = await page(caller, await approvals.find(caller, id), false);
    return created(`/api/workflows/${id}`, body, headers);
  }

  type Waiting = { caller: Caller; prefer: Preferences; signal: AbortSignal };

  async function atEnd(
    { caller, prefer: { waitMs }, signal }: Waiting,
    id: string,
    planned: boolean,
  ): Promise<Answer> {
    const seen =
      waitMs === 0
        ? await approvals.find(caller, id)
        : await approvals.findAtEnd(caller, id, { waitMs, signal, decided: !planned });
    const { body, headers } = await page(caller, seen, planned);
    return ok(body, headers);
  }

  const deciding = (
    verb: 'approve' | 'reject',
    outcome: 'approved' | 'rejected',
    summary: string,
  ): Route =>
    route({
      method: 'POST',
      path: `/api/workflows/{id}/${verb}`,
      area,
      permission: 'workflow:approve',
      checkedInside: true,
      summary,
      params: OneApproval,
      body: DecisionBody,
      answers: { 200: ApprovalRecord },
      headers: ['Prefer', 'If-Match'],
      recover: one,
      handle: async (request) => {
        const { caller, params, body, ifMatch } = request;
        await approvals.decide(caller, params.id, outcome, {
          ...body,
          version: expectedVersion(ifMatch),
        });
        return atEnd(request, params.id, false);
      },
    });

  return [
    route({
      method: 'GET',
      path: '/api/workflows',
      area,
      signedIn: SEES,
      summary: 'List approval requests, newest first, with how many there are of each status',
      query: ApprovalQuery,
      answers: { 200: ApprovalList },
      handle: async ({ caller, query: { limit, cursor, ...filter } }) => {
        const found = { counts: {} };
        const load = async (asked: { limit: number; after: string | undefined }) => {
          const { counts, ...items } = await approvals.list(caller, filter, asked);
          found.counts = counts;
          return items;
        };
        const items = await pageOf('approvals', 'apr', { limit, cursor }, load, present.summary);
        return ok({ ...items, ...found });
      },
    }),
    route({
      method: 'POST',
      path: '/api/workflows',
      area,
      permission: 'workflow:write',
      summary: 'Ask for approval: of a decision, of a job, or of a change of the inventory',
      body: ApprovalBody,
      answers: { 201: ApprovalRecord, 400: Refused, 409: Refused },
      recover: made,
      handle: async ({ caller, body }) => {
        const { several, request } = requestOf(body);
        const result = await requests.create(caller, request);
        if ('approval' in result) return made(caller, result.approval.id);
        return { headers: {}, ...validationView(caller.actorId, result.refused, several) };
      },
    }),
    route({
      method: 'GET',
      path: '/api/workflows/{id}',
      area,
      signedIn: SEES,
      summary: 'Read a request with all that a decision needs',
      params: OneApproval,
      answers: { 200: ApprovalRecord },
      headers: ['Prefer'],
      handle: (request) => atEnd(request, request.params.id, true),
    }),
    deciding('approve', 'approved', 'Approve a request; with enough approvals its job runs'),
    deciding('reject', 'rejected', 'Reject a request'),
    route({
      method: 'POST',
      path: '/api/workflows/{id}/cancel',
      area,
      signedIn:
        'is for whoever made the request, and before its job begins for those who may decide',
      summary: 'Cancel a request before its job begins',
      params: OneApproval,
      body: CancelBody,
      answers: { 200: ApprovalRecord },
      headers: ['If-Match'],
      recover: one,
      handle: async ({ caller, params, body, ifMatch }) => {
        await approvals.cancel(caller, params.id, { ...body, version: expectedVersion(ifMatch) });
        return one(caller, params.id);
      },
    }),
    route({
      method: 'POST',
      path: '/api/workflows/{id}/comments',
      area,
      signedIn:
        'is for whoever made the request, may decide about it or holds workflow:write there',
      summary: 'Comment on a request',
      params: OneApproval,
      body: CommentBody,
      answers: { 200: ApprovalRecord },
      recover: one,
      handle: async ({ caller, params, body }) => {
        await approvals.comment(caller, params.id, body.text);
        return one(caller, params.id);
      },
    }),
  ];
}

function requestOf({ validationRequest, expiresAt, executeAt, ...rest }: ApprovalBody): {
  several: boolean;
  request: ApprovalRequest;
} {
  const change =
    validationRequest === undefined
      ? undefined
      : readMutations(validationRequest, '/validationRequest');
  return {
    several: change?.several ?? false,
    request: {
      ...rest,
      ...(change && { mutations: change.mutations }),
      ...(expiresAt !== undefined && { expiresAt: dateOf('expiresAt', expiresAt, 'body') }),
      ...(executeAt !== undefined && { executeAt: dateOf('executeAt', executeAt, 'body') }),
    },
  };
}
