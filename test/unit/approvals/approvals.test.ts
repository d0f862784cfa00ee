import { describe, expect, test } from '@jest/globals';
import {
  contentHash,
  isSamePerson,
  normalName,
  refusalToDecide,
  reminderTimes,
  type ApprovalContent,
} from '../../../domain/approvals/approvals.ts';
import { BUILT_IN_ROLES, type Role } from '../../../domain/access/roles.ts';
import type { Level, Rights } from '../../../domain/access/scope.ts';

const role = (id: string): Role =>
  BUILT_IN_ROLES.get(id) ?? { id, name: id, permissions: new Set() };
const holding = (...grants: [roleId: string, level: Level, targetId: string][]): Rights => ({
  grants: grants.map(([id, level, targetId]) => ({ role: role(id), level, targetId })),
});

describe('who may decide', () => {
  const request = {
    place: { tenantId: 't', siteId: 's', deviceId: null },
    requesterNames: ['alice'],
    userIds: ['bob'],
    roleIds: ['auditor'],
  };
  const refusal = (rights: Rights, actorId = 'bob', names = [actorId]) =>
    refusalToDecide(request, { actorId, names, rights });
  test.each([
    ['named, with the right at the tenant', holding(['approver', 'tenant', 't']), 'bob', null],
    ['named, with the right at the site', holding(['approver', 'site', 's']), 'bob', null],
    [
      'named, with the right everywhere',
      holding(['approver', 'platform', 'platform']),
      'bob',
      null,
    ],
    [
      'named, with the right elsewhere',
      holding(['approver', 'tenant', 'u'], ['approver', 'site', 'x'], ['approver', 'device', 'd']),
      'bob',
      'permission_denied',
    ],
    ['named, without the right', holding(['operator', 'tenant', 't']), 'bob', 'permission_denied'],
    [
      'by a role, which has not the right itself',
      holding(['approver', 'tenant', 't'], ['auditor', 'site', 's']),
      'carol',
      null,
    ],
    [
      'by a role held elsewhere',
      holding(['approver', 'tenant', 't'], ['auditor', 'site', 'x']),
      'carol',
      'not_assigned',
    ],
    ['by no role', holding(['approver', 'tenant', 't']), 'carol', 'not_assigned'],
    [
      'the requester',
      holding(['platform-admin', 'platform', 'platform']),
      'alice',
      'self_approval',
    ],
  ])('%s', (_, rights, actorId, expected) => {
    expect(refusal(rights, actorId)).toBe(expected);
  });
  test('the requester by another name', () => {
    expect(refusal(holding(['approver', 'tenant', 't']), 'bob', ['bob', 'alice'])).toBe(
      'self_approval',
    );
    expect(isSamePerson([normalName('Ａlice ')], [normalName('alice')])).toBe(true);
    expect(isSamePerson([], [])).toBe(false);
  });
});

test('reminders come after half of the time and after nine tenths', () => {
  const createdAt = new Date('2026-01-01T00:00:00Z');
  expect(
    reminderTimes({ createdAt, expiresAt: new Date('2026-01-11T00:00:00Z') }).map((at) =>
      at.toISOString(),
    ),
  ).toEqual(['2026-01-06T00:00:00.000Z', '2026-01-10T00:00:00.000Z']);
});

describe('the hash of what is approved', () => {
  const key = Buffer.alloc(32, 1).toString('base64');
  const content: ApprovalContent = {
    type: 'change',
    title: 'title',
    payload: { a: 1 },
    tenantId: 't',
    siteId: null,
    deviceId: null,
    createdBy: 'alice',
    jobType: 'core.echo',
    jobPayload: { x: 1 },
    mutations: [{ resource: 'prefixes', operation: 'create', record: { cidr: '10.0.0.0/8' } }],
    plan: {
      effects: [
        {
          action: 'update',
          resource: 'prefixes',
          id: 'p',
          label: 'l',
          reason: 'requested',
          version: 3,
          place: { tenantId: 't' },
          changes: [],
          madeAt: null,
        },
      ],
      warnings: [],
      places: [{ tenantId: 't' }],
    },
    requiredApprovals: 1,
    executeAt: new Date(0),
  };
  const other: { [K in keyof ApprovalContent]: ApprovalContent[K] } = {
    type: 'x',
    title: 'x',
    payload: { a: 2 },
    tenantId: 'x',
    siteId: 'x',
    deviceId: 'x',
    createdBy: 'x',
    jobType: 'x',
    jobPayload: { x: 2 },
    mutations: null,
    plan: {
      effects: content.plan?.effects.map((effect) => ({ ...effect, version: 4 })) ?? [],
      warnings: [],
      places: [],
    },
    requiredApprovals: 2,
    executeAt: null,
  };
  test.each(Object.keys(other) as (keyof ApprovalContent)[])(
    'another %s is another hash',
    (field) => {
      expect(contentHash(key, { ...content, [field]: other[field] })).not.toBe(
        contentHash(key, content),
      );
    },
  );
  test('it is the same after a way through JSON, and another under another key', () => {
    const back = {
      ...(JSON.parse(JSON.stringify(content)) as ApprovalContent),
      executeAt: new Date(0),
    };
    expect(contentHash(key, back)).toBe(contentHash(key, content));
    expect(contentHash(Buffer.alloc(32, 2).toString('base64'), content)).not.toBe(
      contentHash(key, content),
    );
  });
});
