import { beforeEach, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { Page } from '../../support/users.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { expectInvalid } from '../../support/problem.ts';
import { withTargets, type Estate } from '../../support/targets.ts';

const fixture = withTargets();
let ours: Estate;
let theirs: Estate;
beforeEach(async () => {
  [ours, theirs] = [await fixture.estate('ours'), await fixture.estate('theirs')];
});

const onDevice = (id: string, more: object = {}) => ({
  type: 'test.device',
  payload: {},
  target: { kind: 'device', id },
  ...more,
});
const create = (client: TestClient, body: object) => client.post<JobRecord>('/api/jobs', body);
const created = (client: TestClient, deviceId: string) =>
  create(client, onDevice(deviceId)).expect(201);
const listed = async (client: TestClient, query = ''): Promise<string[]> =>
  (await client.get<Page<{ id: string }>>(`/api/jobs${query}`).expect(200)).items.map(
    ({ id }) => id,
  );
const read = (client: TestClient, id: string) => client.get<JobRecord>(`/api/jobs/${id}`);
const refused = async (client: TestClient, body: object, status = 400) => {
  const problem = await client.post<ProblemBody>('/api/jobs', body).expect(status);
  return problem.errors?.map(({ pointer, code }) => `${pointer} ${code}`) ?? problem.code;
};

describe('a job about a device', () => {
  test('belongs to the device, its site and their tenant, and shows its target', async () => {
    const operator = await fixture.user('operator', { siteId: ours.siteA });
    const job = await created(operator, ours.deviceA);
    expect(job).toMatchObject({
      tenantId: ours.tenant,
      siteId: ours.siteA,
      deviceId: ours.deviceA,
      target: { kind: 'device', id: ours.deviceA, name: 'dev-a', tenantId: ours.tenant },
    });
    const viewer = await fixture.user('viewer', { deviceId: ours.deviceA });
    expect(await read(viewer, job.id).expect(200)).toMatchObject({ target: job.target });
    expect(await fixture.audited(job.id)).toMatchObject([
      { action: 'job.create', tenant_id: ours.tenant, after: { target: { id: ours.deviceA } } },
    ]);
    expect(await fixture.events(job.id)).toMatchObject([
      { type: 'job.created', tenant_id: ours.tenant, data: { target: { id: ours.deviceA } } },
    ]);
  });

  test('shows credentials to its author, not to an actor of that name at the tenant', async () => {
    const at = (tenant: string) =>
      fixture.app.client.as({ actor: 'ann', roles: 'platform-admin', tenant });
    const payload = { note: 'password=of-platform' };
    const { id } = await create(at('platform'), onDevice(ours.deviceA, { payload })).expect(201);
    expect((await read(at('platform'), id).expect(200)).payload).toEqual(payload);
    expect((await read(at(ours.tenant), id).expect(200)).payload).toEqual({
      note: 'password=********',
    });
  });

  test('is created, read, cancelled and retried with rights at its site alone', async () => {
    const operator = await fixture.user('operator', { siteId: ours.siteA });
    const { id } = await created(operator, ours.deviceA);
    expect(await listed(operator)).toEqual([id]);
    await operator.get(`/api/jobs/${id}/logs`).expect(200);
    await operator.post(`/api/jobs/${id}/cancel`, {}).expect(202);
    const again = await operator.post<JobRecord>(`/api/jobs/${id}/retry`, {}).expect(201);
    expect(again).toMatchObject({ retryOf: id, target: { id: ours.deviceA }, siteId: ours.siteA });
    const count = await operator.get<{ count: object }>('/api/jobs?count=true').expect(200);
    expect(count.count).toMatchObject({ value: 2 });
  });

  test.each([
    ['an operator of another site', () => fixture.user('operator', { siteId: ours.siteB })],
    ['an administrator of another tenant', () => fixture.admin(theirs.tenant)],
    ['an operator of another device', () => fixture.user('operator', { deviceId: ours.deviceB })],
  ])('does not exist for %s', async (_, makeStranger) => {
    const stranger = await makeStranger();
    const { id } = await created(fixture.admin(ours.tenant), ours.deviceA);
    await read(stranger, id).expect(404);
    for (const path of ['logs', 'logs?follow'])
      await stranger.get(`/api/jobs/${id}/${path}`).expect(404);
    for (const action of ['cancel', 'retry'])
      await stranger.post(`/api/jobs/${id}/${action}`, {}).expect(404);
    for (const query of ['', `?deviceId=${ours.deviceA}`, `?siteId=${ours.siteA}`])
      expect(await listed(stranger, query)).toEqual([]);
    const search = await stranger.get<Page<object>>(`/api/search?q=${id}`).expect(200);
    expect(search.items).toEqual([]);
    const given = await refused(stranger, onDevice(ours.deviceA));
    expect(given).toEqual(['/target/id not_found']);
    expect(await refused(stranger, onDevice('dev_00000000000000000000000000'))).toEqual(given);
  });

  test('of a schedule: another target gets no saved secrets of others', async () => {
    const [author, other] = [
      await fixture.user('operator', { tenantId: ours.tenant }),
      await fixture.user('operator', { tenantId: ours.tenant }),
    ];
    const at = (id: string) => ({ target: { kind: 'device', id } });
    const schedule = (name: string, payload: object) =>
      author
        .post<{ id: string }>('/api/schedules', {
          ...{ name, cronExpression: '0 0 1 1 *', jobType: 'test.device', payload },
          ...at(ours.deviceA),
        })
        .expect(201);
    const withSecret = await schedule('with a secret', { note: 'password=hunter22' });
    const path = `/api/schedules/${withSecret.id}`;
    const shown = { payload: { note: 'password=********' } };
    for (const more of [{}, shown])
      await expectInvalid(other.put(path, { ...at(ours.deviceB), ...more }), '/payload');
    await author.put(path, at(ours.deviceB)).expect(200);
    const known = { payload: { note: 'password=hunter22' } };
    await other.put(path, { ...at(ours.deviceA), ...known }).expect(200);
    await expectInvalid(author.put(path, at(ours.deviceB)), '/payload');
    await author.put(path, { ...at(ours.deviceB), ...known }).expect(200);
    await other.put(path, { ...at(ours.deviceA), payload: { note: 'own' } }).expect(200);
    const plain = await schedule('without one', { note: 'plain' });
    await other.put(`/api/schedules/${plain.id}`, at(ours.deviceB)).expect(200);
  });

  test('is found by search and named for those who may read it', async () => {
    const viewer = await fixture.user('viewer', { siteId: ours.siteA });
    const { id } = await created(fixture.admin(ours.tenant), ours.deviceA);
    const search = await viewer.get<Page<object>>(`/api/search?q=${id}`).expect(200);
    expect(search.items).toMatchObject([{ kind: 'jobs', id }]);
    const named = await viewer
      .get<{ included: { labels: object } }>('/api/jobs?include=labels')
      .expect(200);
    expect(named.included.labels).toMatchObject({
      devices: { [ours.deviceA]: 'dev-a' },
      sites: { [ours.siteA]: 'site-a' },
    });
  });

  test('is listed by site and by device; jobs without a target by neither', async () => {
    const client = fixture.admin(ours.tenant);
    const about = await created(client, ours.deviceA);
    const site = await create(client, {
      type: 'test.site',
      payload: {},
      target: { kind: 'site', id: ours.siteA },
    }).expect(201);
    expect(site).toMatchObject({ siteId: ours.siteA, deviceId: null, target: { name: 'site-a' } });
    const plain = await create(client, { type: 'core.echo', payload: {} }).expect(201);
    expect(plain).toMatchObject({ siteId: null, deviceId: null, target: null });
    expect(await listed(client, `?siteId=${ours.siteA}`)).toEqual([site.id, about.id]);
    expect(await listed(client, `?deviceId=${ours.deviceA}`)).toEqual([about.id]);
    expect(await listed(client, '?siteId=none')).toEqual([plain.id]);
  });
});

describe('a target is refused', () => {
  test.each<[string, (at: Estate) => object, string[]]>([
    ['that is missing', () => onDevice('', { target: undefined }), ['/target required']],
    [
      'of another kind',
      ({ siteA }) => onDevice('', { target: { kind: 'site', id: siteA } }),
      ['/target/kind enum'],
    ],
    [
      'of a type without targets',
      ({ deviceA }) => onDevice(deviceA, { type: 'core.echo' }),
      ['/target no_target'],
    ],
    [
      'that does not exist',
      () => onDevice('dev_00000000000000000000000000'),
      ['/target/id not_found'],
    ],
  ])('%s', async (_, body, errors) => {
    expect(await refused(fixture.admin(ours.tenant), body(ours))).toEqual(errors);
  });

  test('without job:write or inventory:read there, as callers who know it learn', async () => {
    const viewer = await fixture.user('viewer', { siteId: ours.siteA });
    expect(await refused(viewer, onDevice(ours.deviceA), 403)).toBe('permission_denied');
    const runs = await fixture.role('runs', ['job:write']);
    const blind = await fixture.user(runs, { siteId: ours.siteA });
    expect(await refused(blind, onDevice(ours.deviceA), 403)).toBe('permission_denied');
  });

  test('rights at a site do not suffice for a job without a target', async () => {
    const operator = await fixture.user('operator', { siteId: ours.siteA });
    expect(await refused(operator, { type: 'core.echo', payload: {} }, 403)).toBe(
      'permission_denied',
    );
  });

  test('a caller at another tenant creates the job at the tenant of the target', async () => {
    const root = fixture.admin('platform');
    const job = await create(root, onDevice(ours.deviceA)).expect(201);
    expect(job.tenantId).toBe(ours.tenant);
    const reader = await fixture.user('viewer', { tenantId: ours.tenant });
    await read(reader, job.id).expect(200);
  });
});

describe('when the target moves', () => {
  const moveToB = () =>
    fixture
      .admin(ours.tenant)
      .put(`/api/inventory/devices/${ours.deviceA}`, { siteId: ours.siteB })
      .expect(200);

  test('to another site, unfinished jobs go with it and ended ones stay', async () => {
    const client = fixture.admin(ours.tenant);
    const [ended, open] = [
      await created(client, ours.deviceA),
      await created(client, ours.deviceA),
    ];
    await client.post(`/api/jobs/${ended.id}/cancel`, {}).expect(202);
    await moveToB();
    const [atA, atB] = [
      await fixture.user('operator', { siteId: ours.siteA }),
      await fixture.user('operator', { siteId: ours.siteB }),
    ];
    expect(await listed(atA)).toEqual([ended.id]);
    expect(await listed(atB)).toEqual([open.id]);
    await atB.post(`/api/jobs/${open.id}/cancel`, {}).expect(202);
  });

  test('a job begins with the rights where the target is then', async () => {
    const atA = await fixture.user('operator', { siteId: ours.siteA });
    const { id } = await created(atA, ours.deviceA);
    await moveToB();
    expect(await fixture.run(id)).toMatchObject({
      status: 'failed',
      error: { code: 'target_not_found' },
    });
    const atBoth = await fixture.user('operator', { tenantId: ours.tenant });
    const other = await created(atBoth, ours.deviceA);
    expect(await fixture.run(other.id)).toMatchObject({
      status: 'succeeded',
      result: { target: { id: ours.deviceA, name: 'dev-a', siteId: ours.siteB } },
    });
  });

  test('to another tenant, nobody there sees its jobs, and none begins', async () => {
    const client = fixture.admin(ours.tenant);
    const { id } = await created(client, ours.deviceA);
    await fixture.moveToTenant(ours.deviceA, theirs);
    const them = await fixture.user('operator', { deviceId: ours.deviceA });
    expect(await listed(them)).toEqual([]);
    expect(await listed(them, `?deviceId=${ours.deviceA}`)).toEqual([]);
    expect(await read(client, id).expect(200)).toMatchObject({
      deviceId: null,
      target: { id: ours.deviceA, name: null },
    });
    expect(await fixture.run(id)).toMatchObject({ error: { code: 'target_not_found' } });
    const problem = await client.post<ProblemBody>(`/api/jobs/${id}/retry`, {}).expect(409);
    expect(problem.code).toBe('job_not_retryable');
  });

  test('a job whose target is deleted does not begin', async () => {
    const client = fixture.admin(ours.tenant);
    const { id } = await created(client, ours.deviceA);
    await client.delete(`/api/inventory/devices/${ours.deviceA}`).expect(204);
    expect(await fixture.run(id)).toMatchObject({ error: { code: 'target_not_found' } });
    expect(await read(client, id).expect(200)).toMatchObject({
      target: { id: ours.deviceA, name: null },
    });
  });

  test('a job does not begin after its creator has lost the rights at the target', async () => {
    const atA = await fixture.user('operator', { siteId: ours.siteA });
    const { id } = await created(atA, ours.deviceA);
    await fixture.app.deps
      .db('grants')
      .where({ site_id: ours.siteA })
      .update({ role_id: 'viewer' });
    await fixture.app.deps.db('access_state').increment('version', 1);
    expect(await fixture.run(id)).toMatchObject({ error: { code: 'permission_lost' } });
  });
});
