import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { withTargets, type Estate } from '../../support/targets.ts';
import { createUser } from '../../support/users.ts';

const fixture = withTargets();
let ours: Estate;
let theirs: Estate;
let admin: TestClient;
beforeEach(async () => {
  [ours, theirs] = [await fixture.estate('ours'), await fixture.estate('theirs')];
  admin = fixture.admin(ours.tenant);
});

const NOBODY = 'dev_00000000000000000000000000';
const about = (id: string) => ({ kind: 'device', id });
const errorsOf = ({ errors }: ProblemBody) =>
  errors?.map(({ pointer, code }) => `${pointer} ${code}`);
const remove = (path: string) => admin.delete(`/api/inventory/${path}`).expect(204);

describe('a schedule', () => {
  const schedule = (more: object) => ({
    name: 'audit',
    cronExpression: '0 3 1 1 *',
    jobType: 'test.device',
    target: about(ours.deviceA),
    ...more,
  });
  const create = (more: object = {}) =>
    admin.post<ScheduleRecord>('/api/schedules', schedule(more));
  const trigger = (id: string) => admin.post<ProblemBody>(`/api/schedules/${id}/trigger`, {});
  const jobsOf = async (id: string): Promise<JobRecord[]> =>
    (await admin.get<{ items: JobRecord[] }>(`/api/jobs?scheduleId=${id}`).expect(200)).items;

  test('creates jobs about its target', async () => {
    const { id, target } = await create().expect(201);
    expect(target).toEqual(about(ours.deviceA));
    await trigger(id).expect(202);
    expect(await jobsOf(id)).toMatchObject([
      { target: about(ours.deviceA), siteId: ours.siteA, deviceId: ours.deviceA },
    ]);
    const named = await admin
      .get<{ included: { labels: object } }>(`/api/schedules/${id}?include=labels`)
      .expect(200);
    expect(named.included.labels).toMatchObject({ devices: { [ours.deviceA]: 'dev-a' } });
  });

  test.each<[string, () => object, string]>([
    ['that is missing', () => ({ target: null }), '/target required'],
    ['that does not exist', () => ({ target: about(NOBODY) }), '/target/id not_found'],
    ['of another tenant', () => ({ target: about(theirs.deviceA) }), '/target/id not_found'],
    ['of a type without targets', () => ({ jobType: 'core.echo' }), '/target no_target'],
  ])('is refused with a target %s', async (_, more, error) => {
    const problem = await admin.post<ProblemBody>('/api/schedules', schedule(more())).expect(400);
    expect(errorsOf(problem)).toEqual([error]);
  });

  test('of one tenant is not about a device of another, for no caller', async () => {
    const root = fixture.admin('platform');
    const problem = await root.post<ProblemBody>('/api/schedules', schedule({})).expect(400);
    expect(errorsOf(problem)).toEqual(['/target/id mismatch']);
  });

  test('gets another target, and its new owner with it', async () => {
    const { id } = await create().expect(201);
    const other = fixture.app.client.as({
      actor: 'other',
      roles: 'operator',
      tenant: ours.tenant,
    });
    await other.put(`/api/schedules/${id}`, { target: about(ours.deviceA) }).expect(200);
    const same = await admin.get<ScheduleRecord>(`/api/schedules/${id}`).expect(200);
    expect(same.owner).toBe(`admin-of-${ours.tenant}`);
    const changed = await other
      .put<ScheduleRecord>(`/api/schedules/${id}`, { target: about(ours.deviceB) })
      .expect(200);
    expect(changed).toMatchObject({ target: about(ours.deviceB), owner: 'other' });
    const problem = await other
      .put<ProblemBody>(`/api/schedules/${id}`, { target: about(theirs.deviceA) })
      .expect(400);
    expect(errorsOf(problem)).toEqual(['/target/id not_found']);
  });

  describe('whose saved job is not possible any more', () => {
    type Saved = [title: string, fields: object, spoil: () => Promise<unknown>, warning: string];
    const changed = (more: object) =>
      fixture.app.deps.db('schedules').where({ tenant_id: ours.tenant }).update(more);
    const refersTo = (id: string) => ({
      ...{ jobType: 'test.refers', target: null, payload: { site: id } },
    });
    const saved = (): Saved[] => [
      ['target', {}, () => remove(`devices/${ours.deviceA}`), '/target/id not_found'],
      [
        'moved target',
        {},
        () => fixture.moveToTenant(ours.deviceA, theirs),
        '/target/id not_found',
      ],
      [
        'reference',
        refersTo(ours.siteB),
        () => changed({ payload: { site: theirs.siteB } }),
        '/payload/site not_found',
      ],
      ['type', {}, () => changed({ job_type: 'test.removed' }), '/jobType unknown_job_type'],
    ];

    test.each(['target', 'moved target', 'reference', 'type'])(
      'keeps its %s with a warning in what a change does not name',
      async (title) => {
        const [, fields, spoil, warning] = assertDefined(
          saved().find(([each]) => each === title),
          title,
        );
        const { id } = await create(fields).expect(201);
        await spoil();
        for (const change of [{ takeOver: true }, { retryPolicy: { maxAttempts: 4 } }]) {
          const { warnings = [] } = await admin
            .put<ScheduleRecord>(`/api/schedules/${id}`, change)
            .expect(200);
          expect(warnings.map(({ pointer, code }) => `${pointer} ${code}`)).toEqual([warning]);
        }
      },
    );

    test('is refused where the change names it', async () => {
      const { id } = await create().expect(201);
      await remove(`devices/${ours.deviceB}`);
      const refused = async (change: object) =>
        errorsOf(await admin.put<ProblemBody>(`/api/schedules/${id}`, change).expect(400));
      const target = about(ours.deviceB);
      expect(await refused({ target })).toEqual(['/target/id not_found']);
      const ofOthers = { payload: { site: theirs.siteB } };
      const refers = { jobType: 'test.refers', target: null };
      expect(await refused({ ...refers, ...ofOthers })).toEqual(['/payload/site not_found']);
      // The saved target is none of the new type.
      expect(await refused({ jobType: 'test.refers', payload: {} })).toEqual(['/target no_target']);
      // Without its type, a payload cannot be checked.
      await changed({ job_type: 'test.removed' });
      expect(await refused({ payload: { note: 'x' } })).toEqual(['/jobType unknown_job_type']);
    });
  });

  test('does not run after its target is deleted or has moved to another tenant', async () => {
    const [deleted, moved] = [
      await create().expect(201),
      await create({ name: 'other', target: about(ours.deviceB) }).expect(201),
    ];
    await remove(`devices/${ours.deviceA}`);
    await fixture.moveToTenant(ours.deviceB, theirs);
    for (const { id } of [deleted, moved]) {
      expect((await trigger(id).expect(409)).code).toBe('schedule_not_runnable');
      const { db, runner } = fixture.app.deps;
      const dueAt = new Date(Date.UTC(new Date().getUTCFullYear(), 0, 1, 3));
      await db('schedules')
        .where({ id })
        .update({ next_due_at: dueAt, catchup_window_seconds: 31_536_000 });
      expect(await runner.fireOccurrence(id, dueAt)).toMatchObject({
        outcome: 'failed',
        reason: 'target_not_found',
      });
      expect(await jobsOf(id)).toEqual([]);
    }
  });

  test('of an owner without rights at the target runs nothing, and warns', async () => {
    const writes = await fixture.role('schedules', [
      'schedule:write',
      'schedule:read',
      'inventory:read',
    ]);
    const planner = fixture.app.client.as({ actor: 'planner', roles: writes, tenant: ours.tenant });
    const made = await planner.post<ScheduleRecord>('/api/schedules', schedule({})).expect(201);
    expect(made.warnings).toMatchObject([{ code: 'owner_denied' }]);
    expect((await trigger(made.id).expect(409)).code).toBe('schedule_not_runnable');
  });
});

describe('an approval request', () => {
  const request = (more: object) => ({
    type: 'change',
    title: 'Audit',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
    jobType: 'test.device',
    jobTarget: about(ours.deviceA),
    ...more,
  });
  const ask = (more: object = {}) => admin.post<ApprovalRecord>('/api/workflows', request(more));
  const approver = () =>
    fixture.app.client.as({ actor: 'approver', roles: 'approver', tenant: ours.tenant });
  async function approve(id: string): Promise<ApprovalRecord> {
    await approver().post(`/api/workflows/${id}/approve`, {}).expect(200);
    await fixture.app.deps.approvals.execution.createBoundJob(id);
    return admin.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200);
  }

  test('shows its approvers the target by name, and runs there', async () => {
    const { id } = await ask().expect(201);
    const decides = await fixture.role('decides', ['workflow:approve', 'workflow:read']);
    const blind = fixture.app.client.as({
      actor: 'blind',
      roles: `approver,${decides}`,
      tenant: ours.tenant,
    });
    expect(await blind.get(`/api/workflows/${id}`).expect(200)).toMatchObject({
      jobTarget: about(ours.deviceA),
      jobTargetName: 'dev-a',
    });
    const { jobId } = await approve(id);
    expect(await admin.get(`/api/jobs/${jobId}`).expect(200)).toMatchObject({
      target: about(ours.deviceA),
      siteId: ours.siteA,
      source: { kind: 'approval', id },
    });
  });

  test.each<[string, () => object, string]>([
    ['that is missing', () => ({ jobTarget: null }), '/jobTarget required'],
    ['of another tenant', () => ({ jobTarget: about(theirs.deviceA) }), '/jobTarget/id not_found'],
    ['outside its scope', () => ({ siteId: ours.siteB }), '/jobTarget/id outside_scope'],
    ['without a job', () => ({ jobType: undefined }), '/jobTarget one_of'],
  ])('is refused with a target %s', async (_, more, error) => {
    const problem = await admin.post<ProblemBody>('/api/workflows', request(more())).expect(400);
    expect(errorsOf(problem)).toEqual([error]);
  });

  test('of the platform names no device of a tenant as its target', async () => {
    const root = fixture.admin('platform');
    const problem = await root.post<ProblemBody>('/api/workflows', request({})).expect(400);
    expect(errorsOf(problem)).toEqual(['/jobTarget/id outside_scope']);
  });

  test('is not executed after its target has left the scope of the request', async () => {
    const [atSite, atTenant] = [
      await ask({ siteId: ours.siteA }).expect(201),
      await ask().expect(201),
    ];
    await admin.put(`/api/inventory/devices/${ours.deviceA}`, { siteId: ours.siteB }).expect(200);
    expect(await admin.get(`/api/workflows/${atSite.id}`).expect(200)).toMatchObject({
      blocker: { code: 'target_not_found' },
    });
    expect(await admin.get(`/api/workflows/${atTenant.id}`).expect(200)).toMatchObject({
      blocker: null,
    });
    await fixture.moveToTenant(ours.deviceA, theirs);
    expect(await approve(atTenant.id)).toMatchObject({
      execution: 'failed',
      error: { code: 'target_not_found' },
      jobTargetName: null,
      jobId: null,
    });
  });

  describe('of a requester who loses the use of its job type', () => {
    const patternsOf = (role: string, jobTypes: string[]) =>
      fixture.admin('platform').put(`/api/rbac/roles/${role}`, { jobTypes }).expect(200);
    /** A requester who may create the job while the device is at the first site. */
    async function requested(): Promise<{ id: string; role: string; assignment: string }> {
      const role = await fixture.role('types', ['job:read']);
      await patternsOf(role, ['test.granted']);
      const { id: userId, client } = await createUser(fixture.app, {
        roleId: 'operator',
        tenantId: ours.tenant,
      });
      const { id: assignment } = await admin
        .post<{ id: string }>('/api/rbac/assignments', { userId, roleId: role, siteId: ours.siteA })
        .expect(201);
      const { id } = await client
        .post<ApprovalRecord>('/api/workflows', request({ jobType: 'test.granted' }), {
          'x-service-tenant-id': ours.tenant,
        })
        .expect(201);
      return { id, role, assignment };
    }
    const permissionLost = {
      execution: 'failed',
      error: { code: 'permission_lost' },
      jobId: null,
    };

    test.each<[string, (made: { role: string; assignment: string }) => Promise<unknown>]>([
      [
        'the role is revoked',
        ({ assignment }) => admin.delete(`/api/rbac/assignments/${assignment}`).expect(204),
      ],
      ['the role names other types', ({ role }) => patternsOf(role, ['net.*'])],
      [
        'the target leaves the site of the role',
        () =>
          admin.put(`/api/inventory/devices/${ours.deviceA}`, { siteId: ours.siteB }).expect(200),
      ],
    ])('is not executed after %s', async (_, lose) => {
      const made = await requested();
      await lose(made);
      expect(await approve(made.id)).toMatchObject(permissionLost);
    });

    test('is not executed if that happens while the request is checked', async () => {
      const [kept, lost] = [await requested(), await requested()];
      expect(await approve(kept.id)).toMatchObject({ execution: 'running' });
      await approver().post(`/api/workflows/${lost.id}/approve`, {}).expect(200);
      const { rights, approvals } = fixture.app.deps;
      const read = rights.forAuthority;
      const spy = jest.spyOn(rights, 'forAuthority').mockImplementation(async (authority) => {
        const found = await read(authority);
        await patternsOf(lost.role, []);
        return found;
      });
      try {
        await approvals.execution.createBoundJob(lost.id);
        expect(spy).toHaveBeenCalled();
      } finally {
        spy.mockRestore();
      }
      expect(await admin.get(`/api/workflows/${lost.id}`).expect(200)).toMatchObject(
        permissionLost,
      );
    });
  });

  test('is not executed with another target than was approved', async () => {
    const { id } = await ask().expect(201);
    await fixture.app.deps
      .db('approvals')
      .where({ id })
      .update({ job_target: JSON.stringify(about(ours.deviceB)) });
    expect(await approve(id)).toMatchObject({ error: { code: 'content_mismatch' } });
  });
});

describe('records that a payload names', () => {
  const refers = (payload: object) => ({ type: 'test.refers', payload });
  const refuse = async (path: string, body: object) =>
    errorsOf(await admin.post<ProblemBody>(path, body).expect(400));
  const scheduled = (payload: object) => ({
    name: 'names',
    cronExpression: '0 3 1 1 *',
    jobType: 'test.refers',
    payload,
  });
  const requested = (jobPayload: object) => ({
    type: 'change',
    title: 'Names',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
    jobType: 'test.refers',
    jobPayload,
  });

  test('are those that the caller may read, at every way to create a job', async () => {
    const good = { site: ours.siteA, devices: [ours.deviceA, ours.deviceB] };
    await admin.post('/api/jobs', refers(good)).expect(201);
    await admin.post('/api/jobs', refers({ site: null })).expect(201);
    const bad = { site: theirs.siteA, devices: [ours.deviceA, theirs.deviceA, NOBODY] };
    const pointers = ['/site', '/devices/1', '/devices/2'];
    expect(await refuse('/api/jobs', refers(bad))).toEqual(
      pointers.map((pointer) => `/payload${pointer} not_found`),
    );
    expect(await refuse('/api/schedules', scheduled(bad))).toEqual(
      pointers.map((pointer) => `/payload${pointer} not_found`),
    );
    expect(await refuse('/api/workflows', requested(bad))).toEqual(
      pointers.map((pointer) => `/jobPayload${pointer} not_found`),
    );
    const runs = await fixture.role('runs', ['job:write']);
    const blind = fixture.app.client.as({ actor: 'blind', roles: runs, tenant: ours.tenant });
    await blind.post('/api/jobs', refers(good)).expect(400);
  });

  test('are few enough', async () => {
    const devices = Array<string>(501).fill(ours.deviceA);
    expect(await refuse('/api/jobs', refers({ devices }))).toEqual([
      '/payload too_many_references',
    ]);
  });

  test('are checked again at each run of a schedule, at the execution of a request and at a retry', async () => {
    const payload = { devices: [ours.deviceA] };
    const schedule = await admin
      .post<ScheduleRecord>('/api/schedules', scheduled(payload))
      .expect(201);
    const request = await admin
      .post<ApprovalRecord>('/api/workflows', requested(payload))
      .expect(201);
    const job = await admin.post<JobRecord>('/api/jobs', refers(payload)).expect(201);
    await admin.post(`/api/jobs/${job.id}/cancel`, {}).expect(202);
    await admin.post(`/api/schedules/${schedule.id}/trigger`, {}).expect(202);
    await remove(`devices/${ours.deviceA}`);
    const trigger = await admin
      .post<ProblemBody>(`/api/schedules/${schedule.id}/trigger`, {})
      .expect(409);
    expect(trigger.detail).toContain('its payload names a record');
    expect(await admin.get(`/api/workflows/${request.id}`).expect(200)).toMatchObject({
      blocker: { code: 'reference_not_found' },
    });
    const retry = await admin.post<ProblemBody>(`/api/jobs/${job.id}/retry`, {}).expect(409);
    expect(retry.code).toBe('job_not_retryable');
  });
});
