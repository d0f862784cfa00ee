import { describe, expect, test } from '@jest/globals';
import {
  contentHash,
  refusalToDecide,
  reminderTimes,
  type ApprovalContent,
} from '../../../domain/approvals/approvals.ts';
import {
  isSamePerson,
  namesMeaning,
  normalizeName,
  recordedNames,
} from '../../../domain/approvals/names.ts';
import { BUILT_IN_ROLES, type Role } from '../../../domain/access/roles.ts';
import type { Level, Rights } from '../../../domain/access/scope.ts';

const role = (id: string): Role =>
  BUILT_IN_ROLES.get(id) ?? { id, name: id, permissions: new Set(), jobTypes: [] };
const rightsOf = (...grants: [roleId: string, level: Level, targetId: string][]): Rights => ({
  grants: grants.map(([id, level, targetId]) => ({ role: role(id), level, targetId })),
});

describe('who may decide', () => {
  const request = {
    resourceScope: { tenantId: 't', siteId: 's', deviceId: null },
    requesterNames: ['alice'],
    userIds: ['bob'],
    roleIds: ['auditor'],
  };
  const refusalFor = (rights: Rights, actorId = 'bob', names = [actorId]) =>
    refusalToDecide(request, { actorId, names, rights });
  test.each([
    [
      'assigned by id, with the permission at the tenant',
      rightsOf(['approver', 'tenant', 't']),
      'bob',
      null,
    ],
    [
      'assigned by id, with the permission at the site',
      rightsOf(['approver', 'site', 's']),
      'bob',
      null,
    ],
    [
      'assigned by id, with the permission everywhere',
      rightsOf(['approver', 'platform', 'platform']),
      'bob',
      null,
    ],
    [
      'assigned by id, with the permission elsewhere',
      rightsOf(['approver', 'tenant', 'u'], ['approver', 'site', 'x'], ['approver', 'device', 'd']),
      'bob',
      'permission_denied',
    ],
    [
      'assigned by id, without the permission',
      rightsOf(['operator', 'tenant', 't']),
      'bob',
      'permission_denied',
    ],
    [
      'assigned by a role that does not grant the permission itself',
      rightsOf(['approver', 'tenant', 't'], ['auditor', 'site', 's']),
      'carol',
      null,
    ],
    [
      'assigned by a role that is held elsewhere',
      rightsOf(['approver', 'tenant', 't'], ['auditor', 'site', 'x']),
      'carol',
      'not_assigned',
    ],
    ['not assigned', rightsOf(['approver', 'tenant', 't']), 'carol', 'not_assigned'],
    [
      'the requester',
      rightsOf(['platform-admin', 'platform', 'platform']),
      'alice',
      'self_approval',
    ],
  ])('%s', (_, rights, actorId, expected) => {
    expect(refusalFor(rights, actorId)).toBe(expected);
  });
  test('the requester is recognized by another name', () => {
    expect(refusalFor(rightsOf(['approver', 'tenant', 't']), 'bob', ['bob', 'alice'])).toBe(
      'self_approval',
    );
    expect(isSamePerson([normalizeName('Ａlice ')], [normalizeName('alice')])).toBe(true);
    expect(isSamePerson([], [])).toBe(false);
  });
});

describe('names count where they were given', () => {
  const given = (tenantId: string | null) => [{ name: 'alice', tenantId }];
  const meets = (other: string | null, self: string | null, request: string) =>
    isSamePerson(recordedNames(given(other), request), namesMeaning(given(self)));

  test.each([
    ['the tenant of the request', 'a', 'a', true],
    ['the platform', 'platform', 'a', true],
    ['the platform, seen by a guest', 'platform', 'b', true],
    ['the id of an account', null, 'a', true],
    ['another tenant', 'b', 'a', false],
    ['another tenant, seen by the platform', 'b', 'platform', false],
    ['another tenant, seen by its own people', 'b', 'b', true],
    ['the tenant, seen by a guest', 'a', 'b', true],
  ])('a requester named by %s', (_, requester, decider, expected) => {
    expect(meets(requester, decider, 'a')).toBe(expected);
  });

  test('equal ids at two providers are two people; other names are compared with an id', () => {
    const id = [{ name: '42', tenantId: 'platform', atProvider: true as const }];
    const name = [{ name: '42', tenantId: 'platform' }];
    const isOne = (requester: typeof name, decider: typeof name) =>
      isSamePerson(recordedNames(requester, 'a'), namesMeaning(decider));
    expect([isOne(id, id), isOne(id, name), isOne(name, id)]).toEqual([false, true, true]);
    const foreign = [{ name: '42', tenantId: 'b', atProvider: true as const }];
    expect(isOne(foreign, [{ name: '42', tenantId: 'b' }])).toBe(true);
    expect(isOne(foreign, [{ name: '42', tenantId: 'a' }])).toBe(false);
  });

  test('at the platform every name counts', () => {
    expect(meets('b', 'a', 'platform')).toBe(true);
  });

  test('a name cannot be written like that of another tenant', () => {
    const [recorded = ''] = recordedNames(given('b'), 'a');
    expect(normalizeName(recorded)).not.toBe(recorded);
  });
});

test('reminders are sent after 50 % and 90 % of the time', () => {
  const createdAt = new Date('2026-01-01T00:00:00Z');
  expect(
    reminderTimes({ createdAt, expiresAt: new Date('2026-01-11T00:00:00Z') }).map((at) =>
      at.toISOString(),
    ),
  ).toEqual(['2026-01-06T00:00:00.000Z', '2026-01-10T00:00:00.000Z']);
});

describe('the hash of the content', () => {
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
    jobTarget: { kind: 'site', id: 's' },
    typeDigest: 'd',
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
          resourceScope: { tenantId: 't' },
          changes: [],
          createdAt: null,
        },
      ],
      warnings: [],
      requiredScopes: [{ tenantId: 't' }],
    },
    requiredApprovals: 1,
    executeAt: new Date(0),
  };
  const changedContent: { [K in keyof ApprovalContent]: ApprovalContent[K] } = {
    type: 'x',
    title: 'x',
    payload: { a: 2 },
    tenantId: 'x',
    siteId: 'x',
    deviceId: 'x',
    createdBy: 'x',
    jobType: 'x',
    jobPayload: { x: 2 },
    jobTarget: { kind: 'device', id: 's' },
    typeDigest: 'x',
    mutations: null,
    plan: {
      effects: content.plan?.effects.map((effect) => ({ ...effect, version: 4 })) ?? [],
      warnings: [],
      requiredScopes: [],
    },
    requiredApprovals: 2,
    executeAt: null,
  };
  test.each(Object.keys(changedContent) as (keyof ApprovalContent)[])(
    'another %s results in another hash',
    (field) => {
      expect(contentHash(key, { ...content, [field]: changedContent[field] })).not.toBe(
        contentHash(key, content),
      );
    },
  );
  test('a request without a target has the hash that it had before there were targets', () => {
    const { jobTarget, ...before } = content;
    expect(contentHash(key, { ...content, jobTarget: null })).toBe(
      contentHash(key, before as ApprovalContent),
    );
  });
  test('JSON does not change the hash, another key does', () => {
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
