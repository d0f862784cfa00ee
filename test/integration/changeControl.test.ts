import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  approve,
  byRole,
  change,
  eventsOf,
  prefix,
  read,
  request,
  trailOf,
  untilExecution,
  withApprovals,
} from '../support/approvals.ts';
import type { TestClient } from '../support/client.ts';
import { making } from '../support/inventory.ts';
import { admin } from '../support/users.ts';

const { bed, people } = withApprovals();
let root: TestClient;
beforeAll(() => {
  root = admin(bed.app);
});
const make = making(() => root);

const ask = (client: TestClient, more: object) =>
  client.post('/api/workflows', { ...byRole, title: 'a change', ...more });
const approver = () => bed.app.client.as({ actor: 'decider', roles: 'approver' });
const count = async (table: string) => Number((await bed.app.deps.db(table).count('* as n'))[0]?.n);

describe('a change that is not valid is no request', () => {
  test('the answer is that of the validation, and nothing is kept', async () => {
    const net = await make('prefixes', { cidr: '10.10.0.0/16' });
    const cases: object[] = [
      prefix('10.10.1.1/16'),
      prefix('nonsense', { status: 'odd', vrfId: 'vrf_none' }),
      prefix('10.10.0.0/16'),
      { validationRequest: { resource: 'prefixes', operation: 'explode', record: {} } },
      { validationRequest: { resource: 'nothing', operation: 'create', record: 7 } },
      { validationRequest: {} },
      change(
        ['create', 'prefixes', { cidr: '10.11.0.0/16' }],
        ['create', 'prefixes', { cidr: '10.11.0.0/16' }],
        ['delete', 'prefixes', { id: 'pfx_none' }],
      ),
      change(['update', 'prefixes', { id: net.id, version: 7, description: 'x' }]),
    ];
    const before = [
      await count('approvals'),
      await count('audit_entries'),
      await count('events'),
      await count('prefixes'),
    ];
    for (const body of cases) {
      const said = await root.post('/api/validation/inventory', (body as any).validationRequest);
      const asked = await ask(root, body);
      expect([400, 409]).toContain(asked.status);
      expect([asked.status, asked.body]).toEqual([said.status, said.body]);
    }
    expect([
      await count('approvals'),
      await count('audit_entries'),
      await count('events'),
      await count('prefixes'),
    ]).toEqual(before);
  });
  test('what is no validation request, changes nothing, or has its job twice, is an error of its field', async () => {
    const net = await make('prefixes', { cidr: '10.12.0.0/16' });
    const errors = async (more: object) =>
      (await ask(root, more)).body.errors?.map(({ pointer, code }: any) => [pointer, code]);
    expect(await errors({ validationRequest: { mutations: [] } })).toEqual([
      ['/validationRequest/mutations', 'type'],
    ]);
    expect(await errors({ validationRequest: { mutations: [{}], resource: 'x' } })).toEqual([
      ['/validationRequest', 'one_of'],
    ]);
    expect(await errors({ validationRequest: { odd: 1 } })).toEqual([
      ['/validationRequest/odd', 'unknown_field'],
    ]);
    expect(await errors(change(['update', 'prefixes', { id: net.id, description: '' }]))).toEqual([
      ['/validationRequest', 'nothing_changes'],
    ]);
    expect(await errors({ ...prefix('10.13.0.0/16'), jobPayload: {} })).toEqual([
      ['/jobPayload', 'one_of'],
    ]);
    expect(await errors({ jobType: 'inventory.apply', jobPayload: { mutations: [] } })).toEqual([
      ['/validationRequest', 'required'],
    ]);
    expect(await errors({ jobPayload: {} })).toEqual([['/jobPayload', 'one_of']]);
    expect(await errors({ jobType: 'http.request', jobPayload: { url: 7 } })).toEqual(
      expect.arrayContaining([['/jobPayload/url', 'type']]),
    );
    expect(await errors({ jobType: 'none.such' })).toEqual([['/jobType', 'unknown_job_type']]);
    const now = new Date().toISOString();
    expect(
      await errors({
        expiresAt: now,
        executeAt: '2099-01-01T00:00:00Z',
        assignedRoleIds: ['none'],
        assignedUserIds: ['usr_x'],
      }),
    ).toEqual([
      ['/expiresAt', 'past'],
      ['/executeAt', 'too_far'],
      ['/assignedUserIds/0', 'not_found'],
      ['/assignedRoleIds/0', 'not_found'],
    ]);
  });
  test('what nobody would run has no time to run, and no time later than it', async () => {
    const executeAt = new Date(Date.now() + 3_600_000).toISOString();
    expect((await ask(root, { executeAt })).body.errors).toMatchObject([
      { pointer: '/executeAt', code: 'one_of' },
    ]);
    expect((await ask(root, { executeAt, jobType: 'core.echo' })).body).toMatchObject({
      executeAt,
      expiresAt: executeAt,
    });
    expect((await ask(root, { title: ' ' })).status).toBe(400);
  });
  test('an Idempotency-Key whose request was refused can be used again', async () => {
    const key = { 'idempotency-key': `refused-${Date.now()}` };
    const send = (cidr: string) =>
      root.post('/api/workflows', { ...byRole, title: 'keyed', ...prefix(cidr) }, key);
    expect((await send('10.14.0.1/16')).status).toBe(400);
    const made = await send('10.14.0.0/16');
    expect(made.status).toBe(201);
    const again = await send('10.14.0.0/16');
    expect([again.status, again.body.id, again.headers.get('idempotent-replayed')]).toEqual([
      201,
      made.body.id,
      'true',
    ]);
  });
});

describe('what is approved is what happens', () => {
  test('the page shows every record that changes, old and new, with what follows from it', async () => {
    const [inner, vrf] = [
      await make('prefixes', { cidr: '10.20.1.0/24', description: 'inner' }),
      await make('vrfs', { name: 'blue' }),
    ];
    const made = await request(
      root,
      change(
        ['create', 'prefixes', { cidr: '10.20.0.0/16', description: 'outer' }],
        ['update', 'prefixes', { id: inner.id, status: 'reserved' }],
        ['delete', 'vrfs', { id: vrf.id }],
        ['create', 'regions', { name: 'north' }],
        ['create', 'sites', { name: 'n1', regionId: { name: 'north' } }],
      ),
    );
    const effect = (resource: string, action: string) =>
      made.effects.find((each: any) => each.resource === resource && each.action === action);
    const field = (each: any, name: string) => each.changes.find((one: any) => one.field === name);
    expect(made.effects).toHaveLength(5);
    expect(effect('prefixes', 'create')).toMatchObject({
      id: 'new:1',
      label: '10.20.0.0/16',
      reason: 'requested',
    });
    expect(field(effect('prefixes', 'create'), 'description')).toEqual({
      field: 'description',
      before: null,
      after: 'outer',
    });
    expect(effect('prefixes', 'update')).toMatchObject({ id: inner.id, version: 1 });
    expect(field(effect('prefixes', 'update'), 'status')).toEqual({
      field: 'status',
      before: 'active',
      after: 'reserved',
    });
    expect(field(effect('prefixes', 'update'), 'parentPrefixId')).toEqual({
      field: 'parentPrefixId',
      before: null,
      after: 'new:1',
    });
    expect(field(effect('vrfs', 'delete'), 'name')).toEqual({
      field: 'name',
      before: 'blue',
      after: null,
    });
    expect(field(effect('sites', 'create'), 'regionId')).toEqual({
      field: 'regionId',
      before: null,
      after: effect('regions', 'create').id,
    });
    expect(made).toMatchObject({
      changedSince: null,
      hiddenEffects: 0,
      requester: { id: 'root' },
      deciders: { users: [], roles: [{ id: 'approver', name: 'Approver', mayApprove: true }] },
      ifApproved:
        'One approval is needed. Then, at once, a job of the type inventory.apply changes all 5 records of the plan, or none, with the rights that the gateway gave root for the request. If it would change anything else by then, it does not run.',
    });
    const { body } = await approve(approver(), made.id, {}, { prefer: 'wait=20' });
    expect(body).toMatchObject({ execution: 'succeeded', difference: null, error: null });
    const { result } = (await root.get(`/api/jobs/${body.jobId as string}`)).body;
    expect(
      result.changes
        .map(({ action, resource }: any) => `${action as string} ${resource as string}`)
        .sort(),
    ).toEqual([
      'create prefixes',
      'create regions',
      'create sites',
      'delete vrfs',
      'update prefixes',
    ]);
    const parent = result.changes.find(
      ({ action, resource }: any) => action === 'create' && resource === 'prefixes',
    ).id;
    expect((await root.get(`/api/inventory/prefixes/${inner.id as string}`)).body).toMatchObject({
      parentPrefixId: parent,
      status: 'reserved',
    });
  });
  test('the change is the requester’s in the trail of the records', async () => {
    const { asker, decider } = people();
    const made = await request(asker, prefix('10.21.0.0/16'));
    const { body } = await approve(decider, made.id, {}, { prefer: 'wait=20' });
    const { result } = (await asker.get(`/api/jobs/${body.jobId as string}`)).body;
    const { items } = (
      await asker.get(`/api/inventory/prefixes/${result.changes[0].id as string}/changes`)
    ).body;
    expect(items).toMatchObject([
      { action: 'create', actorId: 'asker', requestId: `job:${body.jobId as string}` },
    ]);
  });

  const stale = async (more: object, disturb: () => Promise<unknown>) => {
    const made = await request(root, more);
    expect(made.changedSince).toBeNull();
    expect(await read(approver(), made.id)).toMatchObject({ changedSince: null });
    await disturb();
    const { changedSince } = await read(approver(), made.id);
    expect(changedSince).toMatchObject({ code: 'stale_plan' });
    expect((await read(approver(), made.id)).ifApproved).toMatch(
      /^As the world is now it would not be carried out: /,
    );
    await approve(approver(), made.id);
    const end = await untilExecution(root, made.id, 'stale');
    expect(end).toMatchObject({
      status: 'approved',
      error: { code: 'stale_plan' },
      jobId: null,
      changedSince: null,
    });
    expect((await read(approver(), made.id)).difference).toEqual(changedSince.difference);
    expect(await trailOf(bed.app, made.id)).toEqual([
      'workflow.create',
      'workflow.approve',
      'workflow.stale failed',
    ]);
    expect((await eventsOf(bed.app, made.id)).at(-1)).toBe('workflow.executed');
    return end.difference;
  };

  test('stale: a record that it touches has changed', async () => {
    const net = await make('prefixes', { cidr: '10.30.0.0/16' });
    const difference = await stale(
      change(['update', 'prefixes', { id: net.id, status: 'reserved' }]),
      () => root.put(`/api/inventory/prefixes/${net.id as string}`, { description: 'meanwhile' }),
    );
    expect(difference.effects).toMatchObject([
      { approved: { id: net.id, version: 1 }, now: { id: net.id, version: 2 } },
    ]);
    expect((await root.get(`/api/inventory/prefixes/${net.id as string}`)).body).toMatchObject({
      status: 'active',
      version: 2,
    });
  });
  test('stale: it would do more than was approved', async () => {
    const difference = await stale(prefix('10.31.0.0/16'), () =>
      make('prefixes', { cidr: '10.31.5.0/24' }),
    );
    expect(difference.effects).toMatchObject([
      { approved: null, now: { action: 'update', label: '10.31.5.0/24', reason: 'reparented' } },
    ]);
  });
  test('stale: it would do less, or the same to another record', async () => {
    const region = await make('regions', { name: 'meant' });
    const difference = await stale(
      change(['create', 'sites', { name: 'there', regionId: { name: 'meant' } }]),
      async () => {
        await root.put(`/api/inventory/regions/${region.id as string}`, { name: 'old' });
        await make('regions', { name: 'meant' });
      },
    );
    expect(
      difference.effects[0].approved.changes.find(({ field }: any) => field === 'regionId').after,
    ).toBe(region.id);
    expect(
      difference.effects[0].now.changes.find(({ field }: any) => field === 'regionId').after,
    ).not.toBe(region.id);
  });
  test('stale: it is not valid any more', async () => {
    const difference = await stale(
      change(
        ['create', 'regions', { name: 'first' }],
        ['create', 'prefixes', { cidr: '10.32.0.0/16' }],
      ),
      () => make('prefixes', { cidr: '10.32.0.0/16' }),
    );
    expect(difference).toMatchObject({
      errors: [],
      conflicts: [{ code: 'duplicate', pointer: expect.stringContaining('/mutations/1') }],
      effects: [],
    });
    expect((await root.get('/api/inventory/regions?name=first')).body.items).toEqual([]);
  });
  test('stale: what it deletes is gone', async () => {
    const region = await make('regions', { name: 'gone' });
    const difference = await stale(change(['delete', 'regions', { id: region.id }]), () =>
      root.delete(`/api/inventory/regions/${region.id as string}`),
    );
    expect(difference.errors).toMatchObject([
      {
        code: 'not_found',
        pointer: '/mutations/0/record/id',
        message: 'there is no region with this id',
      },
    ]);
  });
  test('stale: another record was made under the id that it names', async () => {
    const tag = { id: `again-${Date.now()}`, name: `A ${Date.now()}` };
    await make('tags', tag);
    const difference = await stale(
      change(['update', 'tags', { id: tag.id, name: `B ${Date.now()}` }]),
      async () => {
        await root.delete(`/api/inventory/tags/${tag.id}`);
        await make('tags', { ...tag, description: 'another one' });
      },
    );
    expect(difference.effects).toHaveLength(1);
  });
  test('what was not carried out, or was, is not run again as a job', async () => {
    const made = await request(root, prefix('10.41.0.0/16'));
    const { jobId } = (await approve(approver(), made.id, {}, { prefer: 'wait=20' })).body;
    await root.delete(
      `/api/inventory/prefixes/${(await root.get(`/api/jobs/${jobId as string}`)).body.result.changes[0].id as string}`,
    );
    expect((await root.post(`/api/jobs/${jobId as string}/retry`)).body).toMatchObject({
      status: 409,
      code: 'job_not_retryable',
    });
  });
  test('not stale: what it does not touch may change', async () => {
    const made = await request(root, prefix('10.33.0.0/16'));
    await make('prefixes', { cidr: '10.34.0.0/16' });
    expect((await approve(approver(), made.id, {}, { prefer: 'wait=20' })).body).toMatchObject({
      execution: 'succeeded',
    });
  });
  test('of requests for the same, approved at once, one is made and the others are stale', async () => {
    const made = await Promise.all(
      Array.from({ length: 5 }, () => request(root, prefix('10.35.0.0/16'))),
    );
    await Promise.all(made.map(({ id }) => approve(approver(), id)));
    const ends = await Promise.all(made.map(({ id }) => approverSees(id)));
    expect(ends.map(({ execution }) => execution).sort()).toEqual([
      'stale',
      'stale',
      'stale',
      'stale',
      'succeeded',
    ]);
    expect(
      ends
        .filter(({ execution }) => execution === 'stale')
        .every(({ difference }) => difference.conflicts[0].code === 'duplicate'),
    ).toBe(true);
  });
  const approverSees = async (id: string) =>
    (await approver().get(`/api/workflows/${id}`, { prefer: 'wait=20' })).body;

  test('another job with a change: the change only guards it', async () => {
    const made = await request(root, {
      ...prefix('10.36.0.0/16'),
      jobType: 'core.echo',
      jobPayload: { then: 'that' },
    });
    expect((await approve(approver(), made.id, {}, { prefer: 'wait=20' })).body).toMatchObject({
      execution: 'succeeded',
      jobType: 'core.echo',
    });
    expect((await root.get('/api/inventory/prefixes?cidr=10.36.0.0/16')).body.items).toEqual([]);
    await stale({ ...prefix('10.37.0.0/16'), jobType: 'core.echo' }, () =>
      make('prefixes', { cidr: '10.37.0.0/16' }),
    );
  });
  test('a request that was tampered with is not carried out', async () => {
    const made = await request(root, prefix('10.38.0.0/16'));
    await approve(approver(), (await request(root, { type: 'x' })).id);
    await bed.app.deps
      .db('approvals')
      .where({ id: made.id })
      .update({
        mutations: JSON.stringify([
          { resource: 'prefixes', operation: 'create', record: { cidr: '10.39.0.0/16' } },
        ]),
      });
    expect((await read(root, made.id)).changedSince).toMatchObject({ code: 'content_changed' });
    await approve(approver(), made.id);
    expect(await untilExecution(root, made.id, 'failed')).toMatchObject({
      error: { code: 'content_changed' },
    });
  });
});

describe('inventory.apply by itself', () => {
  test('applies all or nothing, with the rights of whoever made the job', async () => {
    const { asker } = people();
    const job = async (...mutations: any[]) =>
      (
        await asker.post(
          '/api/jobs',
          { type: 'inventory.apply', payload: { mutations } },
          { prefer: 'wait=20' },
        )
      ).body;
    const create = (cidr: string, more: object = {}) => ({
      resource: 'prefixes',
      operation: 'create',
      record: { cidr, ...more },
    });
    expect(await job(create('10.50.0.0/16'), create('10.51.0.0/16'))).toMatchObject({
      status: 'succeeded',
      result: { changes: [{ action: 'create' }, { action: 'create' }] },
    });
    expect(await job(create('10.52.0.0/16'), create('10.50.0.0/16'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'change_refused' },
    });
    expect(await job(create('10.53.0.0/16', { tenantId: 'elsewhere' }))).toMatchObject({
      status: 'failed',
      error: { code: 'change_refused' },
    });
    expect((await root.get('/api/inventory/prefixes?within=10.52.0.0/15')).body.items).toEqual([]);
    const viewer = bed.app.client.as({ actor: 'v', roles: 'viewer' });
    expect(
      (
        await viewer.post('/api/jobs', {
          type: 'inventory.apply',
          payload: { mutations: [create('10.54.0.0/16')] },
        })
      ).status,
    ).toBe(403);
  });
});
