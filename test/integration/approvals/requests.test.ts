import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import {
  assignedToApprovers,
  changeRequest,
  createPrefix,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

const { fixture } = withApprovals({}, { idle: true });
let root: TestClient;
beforeAll(() => {
  root = admin(fixture.app);
});
const createRecord: (resource: string, record: object) => Promise<{ id: string }> = recordFactory(
  () => root,
);

const postRequest = <T = ApprovalRecord>(overrides: object) =>
  root.post<T>('/api/workflows', { ...assignedToApprovers, title: 'a change', ...overrides });

/** The number of rows of all tables that a request could write to. */
const counts = () =>
  Promise.all(
    ['approvals', 'audit_entries', 'events', 'prefixes'].map(async (table) => {
      const [row] = await fixture.app.deps.db<{ n: number }>(table).count({ n: '*' });
      return Number(row?.n);
    }),
  );

/** The pointer and the code of each field error. */
const errorsOf = async (overrides: object) => {
  const { errors = [] } = await postRequest<ProblemBody>(overrides).expect(400);
  return errors.map(({ pointer, code }) => [pointer, code]);
};

test('an invalid change is answered like its validation, and nothing is stored', async () => {
  const { id } = await createRecord('prefixes', { cidr: '10.10.0.0/16' });
  const cases = [
    createPrefix('10.10.1.1/16'),
    createPrefix('nonsense', { status: 'odd', vrfId: 'vrf_none' }),
    createPrefix('10.10.0.0/16'),
    { validationRequest: { resource: 'prefixes', operation: 'explode', record: {} } },
    { validationRequest: { resource: 'nothing', operation: 'create', record: 7 } },
    { validationRequest: {} },
    changeRequest(
      ['create', 'prefixes', { cidr: '10.11.0.0/16' }],
      ['create', 'prefixes', { cidr: '10.11.0.0/16' }],
      ['delete', 'prefixes', { id: 'pfx_none' }],
    ),
    changeRequest(['update', 'prefixes', { id, version: 7, description: 'x' }]),
  ];
  const before = await counts();
  for (const body of cases) {
    const validation = await root.post<object>('/api/validation/inventory', body.validationRequest);
    expect([400, 409]).toContain(validation.status);
    expect(await postRequest<object>(body).expect(validation.status)).toEqual(validation.body);
  }
  expect(await counts()).toEqual(before);
});

describe('a request with wrong fields is refused, and every field is named', () => {
  test('the validation request', async () => {
    const { id } = await createRecord('prefixes', { cidr: '10.12.0.0/16' });
    expect(await errorsOf({ validationRequest: { mutations: [] } })).toEqual([
      ['/validationRequest/mutations', 'type'],
    ]);
    expect(await errorsOf({ validationRequest: { mutations: [{}], resource: 'x' } })).toEqual([
      ['/validationRequest', 'one_of'],
    ]);
    expect(await errorsOf({ validationRequest: { odd: 1 } })).toEqual([
      ['/validationRequest/odd', 'unknown_field'],
    ]);
    expect(await errorsOf(changeRequest(['update', 'prefixes', { id, description: '' }]))).toEqual([
      ['/validationRequest', 'no_changes'],
    ]);
  });

  test('an unknown field of a mutation, as in a validation and in a batch', async () => {
    const { id } = await createRecord('prefixes', { cidr: '10.15.0.0/16' });
    const mutation = { resource: 'prefixes', operation: 'update', record: { id }, version: 3 };
    const body = { mutations: [mutation] };
    for (const [path, fields] of [
      ['/api/validation/inventory', {}],
      ['/api/inventory/bulk', { mode: 'all' }],
    ] as const) {
      const { errors } = await root.post<ProblemBody>(path, { ...body, ...fields }).expect(400);
      expect(errors).toMatchObject([{ pointer: '/mutations/0/version', code: 'unknown_field' }]);
    }
    expect(await errorsOf({ validationRequest: body })).toEqual([
      ['/validationRequest/mutations/0/version', 'unknown_field'],
    ]);
  });

  test('but null in a field of the other form is not given', async () => {
    const nulls = { resource: null, operation: null, record: null };
    const { validationRequest } = changeRequest(['create', 'prefixes', { cidr: '10.14.0.0/16' }]);
    const body = { ...nulls, ...validationRequest };
    await root.post('/api/validation/inventory', body).expect(200);
    await postRequest({ validationRequest: body }).expect(201);
  });

  test('the bound job', async () => {
    expect(await errorsOf({ ...createPrefix('10.13.0.0/16'), jobPayload: {} })).toEqual([
      ['/jobPayload', 'one_of'],
    ]);
    expect(await errorsOf({ jobType: 'inventory.apply', jobPayload: { mutations: [] } })).toEqual([
      ['/validationRequest', 'required'],
    ]);
    expect(await errorsOf({ jobPayload: {} })).toEqual([['/jobPayload', 'one_of']]);
    expect(await errorsOf({ jobType: 'http.request', jobPayload: { url: 7 } })).toEqual(
      expect.arrayContaining([['/jobPayload/url', 'type']]),
    );
    expect(await errorsOf({ jobType: 'none.such' })).toEqual([['/jobType', 'unknown_job_type']]);
  });

  test('times and assignees', async () => {
    const expiresAt = new Date().toISOString();
    const executeAt = '2099-01-01T00:00:00Z';
    expect(
      await errorsOf({
        expiresAt,
        executeAt,
        assignedRoleIds: ['none'],
        assignedUserIds: ['usr_x'],
      }),
    ).toEqual([
      ['/expiresAt', 'in_the_past'],
      ['/executeAt', 'too_far_ahead'],
      ['/assignedUserIds/0', 'not_found'],
      ['/assignedRoleIds/0', 'not_found'],
    ]);
    expect(await errorsOf({ title: ' ' })).toEqual([['/title', 'pattern']]);
  });
});

test('executeAt needs something that runs, and is the default expiry', async () => {
  const executeAt = new Date(Date.now() + 3_600_000).toISOString();
  expect(await errorsOf({ executeAt })).toEqual([['/executeAt', 'one_of']]);
  expect(await postRequest({ executeAt, jobType: 'core.echo' }).expect(201)).toMatchObject({
    executeAt,
    expiresAt: executeAt,
  });
});

test('an Idempotency-Key can be used again after its request was refused', async () => {
  const key = { 'idempotency-key': `refused-${Date.now()}` };
  const post = (cidr: string) =>
    root.post<ApprovalRecord>(
      '/api/workflows',
      { ...assignedToApprovers, title: 'keyed', ...createPrefix(cidr) },
      key,
    );
  await post('10.14.0.1/16').expect(400);
  const { id } = await post('10.14.0.0/16').expect(201);
  const replayed = await post('10.14.0.0/16');
  expect([replayed.status, replayed.body.id, replayed.headers.get('idempotent-replayed')]).toEqual([
    201,
    id,
    'true',
  ]);
});
