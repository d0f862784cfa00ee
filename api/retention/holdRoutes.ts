import { Type, type Static } from 'typebox';
import {
  HELD_TYPES,
  HOLD_STATUSES,
  holdStatusAt,
  type LegalHoldData,
} from '../../domain/retention/holds.ts';
import type { LegalHolds } from '../../services/retention/legalHolds.ts';
import { expectedVersion } from '../http/etag.ts';
import { choiceField, idField, severalOf, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { parseTime } from '../http/queryTime.ts';
import { created, ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { Actor, closed, Id, Name, Nullable, TenantId, Timestamp } from '../http/schemas.ts';

const tag = 'Legal holds';

const Subject = Type.Object(
  {
    type: Type.Enum([...HELD_TYPES], {
      title: 'LegalHoldSubjectType',
      description: 'Kind of the record, as audit entries name it.',
    }),
    id: Name({ description: 'Id of the record; for `user` the `actorId` of what the user did.' }),
  },
  { title: 'HeldSubject', 'x-subject': 'type', ...closed },
);

const Reason = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 1_000,
    pattern: '^$|\\S',
    'x-rule': 'must not be only white space',
    description,
  });

const Status = Type.Enum([...HOLD_STATUSES], { title: 'LegalHoldStatus' });

const HoldRecord = Type.Object(
  {
    id: Id('hld'),
    tenantId: TenantId('The tenant whose records are held; `platform`: the installation.'),
    level: Type.Enum(['platform', 'tenant'], {
      description:
        'Where the permission to release it is needed: where its creator had the permission.',
    }),
    subject: Nullable(Subject),
    reason: Type.String(),
    startsAt: Timestamp,
    endsAt: Nullable(Timestamp),
    status: Status,
    createdBy: Actor(),
    createdAt: Timestamp,
    releasedBy: Nullable(Actor()),
    releasedAt: Nullable(Timestamp),
    releaseReason: Nullable(Type.String()),
    version: Type.Integer(),
  },
  { title: 'LegalHold', ...closed },
);
type HoldRecord = Static<typeof HoldRecord>;

const HoldRequest = Type.Object(
  {
    tenantId: Type.Optional(TenantId('Default: the tenant of the request.')),
    subject: Type.Optional(Subject),
    reason: Reason('Why, for example the name of the case.'),
    startsAt: Type.Optional(Timestamp),
    endsAt: Type.Optional(Timestamp),
  },
  { title: 'LegalHoldRequest', ...closed },
);

const ReleaseRequest = Type.Object(
  { reason: Reason('Why it is released.') },
  { title: 'LegalHoldRelease', ...closed },
);

const HOLDS = defineList({
  name: 'legal-holds',
  id: 'hld',
  item: HoldRecord,
  title: 'LegalHoldList',
  fields: {
    tenantId: idField(TenantId()),
    subjectType: choiceField(HELD_TYPES, { title: 'LegalHoldSubjectType', nullable: true }),
    subjectId: textField({ nullable: true }),
    createdBy: textField({ facet: true }),
    createdAt: timeField(),
  },
  own: {
    status: severalOf(Status, 'Holds with one of these statuses.'),
  },
});

const OneHold = Type.Object({ id: Id('hld') }, closed);

const view = (hold: LegalHoldData, now: Date): HoldRecord => ({
  id: hold.id,
  tenantId: hold.tenantId,
  level: hold.level,
  subject:
    hold.subjectType === null || hold.subjectId === null
      ? null
      : { type: hold.subjectType, id: hold.subjectId },
  reason: hold.reason,
  startsAt: (hold.startsAt ?? hold.createdAt).toISOString(),
  endsAt: hold.endsAt?.toISOString() ?? null,
  status: holdStatusAt(hold, now),
  createdBy: hold.createdBy,
  createdAt: hold.createdAt.toISOString(),
  releasedBy: hold.releasedBy,
  releasedAt: hold.releasedAt?.toISOString() ?? null,
  releaseReason: hold.releaseReason,
  version: hold.version,
});

/** Legal holds. */
export function legalHoldRoutes(legalHolds: LegalHolds): Route[] {
  const viewNow = async (hold: LegalHoldData) => view(hold, await legalHolds.now());
  const response = async (hold: LegalHoldData) => ok(await viewNow(hold));
  const createdResponse = async (hold: LegalHoldData) =>
    created(`/api/legal-holds/${hold.id}`, await viewNow(hold));
  return [
    route({
      method: 'GET',
      path: '/api/legal-holds',
      operationId: 'listLegalHolds',
      tag,
      permission: 'hold:read',
      summary: 'List legal holds',
      query: HOLDS.query,
      responses: { 200: HOLDS.schema },
      handle: async ({ caller, query }) => {
        const now = await legalHolds.now();
        return HOLDS.respond(
          query,
          (request, own) => legalHolds.list(caller, own, request),
          (hold) => view(hold, now),
        );
      },
    }),
    route({
      method: 'POST',
      path: '/api/legal-holds',
      operationId: 'createLegalHold',
      tag,
      permission: 'hold:write',
      summary: 'Create a legal hold',
      description:
        'While it is in force, what is held is neither deleted nor purged, and backups with it are ' +
        'kept. Without a subject, everything of the tenant is held.',
      body: HoldRequest,
      example: {
        reason: 'Case 2026-114',
        subject: { type: 'device', id: 'dev_01k8qzj3m5x7c9v1b3n5m7q9w1' },
        endsAt: '2030-12-31T00:00:00.000Z',
      },
      responses: { 201: HoldRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await legalHolds.read(caller, id, 'hold:write')),
      handle: async ({ caller, body: { startsAt, endsAt, ...rest } }) =>
        createdResponse(
          await legalHolds.create(caller, {
            ...rest,
            ...(startsAt !== undefined && { startsAt: parseTime('startsAt', startsAt, 'body') }),
            ...(endsAt !== undefined && { endsAt: parseTime('endsAt', endsAt, 'body') }),
          }),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/legal-holds/{id}',
      operationId: 'getLegalHold',
      tag,
      permission: 'hold:read',
      summary: 'Get a legal hold',
      params: OneHold,
      responses: { 200: HoldRecord },
      handle: async ({ caller, params }) => response(await legalHolds.read(caller, params.id)),
    }),
    route({
      method: 'POST',
      path: '/api/legal-holds/{id}/release',
      operationId: 'releaseLegalHold',
      tag,
      permission: 'hold:release',
      summary: 'Release a legal hold',
      description:
        'The record of the hold remains. A hold whose creator had the permission at the platform ' +
        'needs `hold:release` there.',
      params: OneHold,
      body: ReleaseRequest,
      example: { reason: 'The case is closed' },
      responses: { 200: HoldRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        response(
          await legalHolds.release(caller, params.id, body.reason, expectedVersion(ifMatch)),
        ),
    }),
  ];
}
