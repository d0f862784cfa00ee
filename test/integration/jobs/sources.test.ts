import { expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import type { JobRecord, JobSummary } from '../../../api/jobs/schemas.ts';
import { TABLES } from '../../../db/backups/tables.ts';
import type { ProblemBody } from '../../support/client.ts';
import { approve, approveAndWait, createRequest, echoJob } from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createMinutelySchedule,
  jobIdOf,
  readJob,
  triggerSchedule,
  type PageOf,
} from '../../support/schedules.ts';
import { withWebhookReceiver } from '../../support/webhooks.ts';

const { fixture, register, createJob, waitForDelivery } = withWebhookReceiver();
const clientOf = (tenant: string, actor = 'alice') => fixture.app.client.as({ tenant, actor });

test('jobs are listed by the schedule, approval request or webhook that created them', async () => {
  const tenant = 'sources';
  const client = clientOf(tenant);
  const list = (query: string, reader = client) =>
    reader.get<PageOf<JobSummary>>(`/api/jobs?${query}`).expect(200);
  const idsOf = async (query: string, reader = client) =>
    (await list(query, reader)).items.map(({ id }) => id);

  const webhook = await register(client, '/sources');
  await createJob(client);
  const { jobId: deliveryJob } = await waitForDelivery(client, webhook.id);
  expect(await idsOf(`webhookId=${webhook.id}`)).toEqual([deliveryJob]);
  await client.delete(`/api/webhooks/${webhook.id}`).expect(204);

  const schedule = await createMinutelySchedule(client, {
    enabled: false,
    overlapPolicy: 'allowAll',
  });
  const other = await createMinutelySchedule(client, { enabled: false });
  const runs = [
    await triggerSchedule(client, schedule.id),
    await triggerSchedule(client, schedule.id),
  ];
  const newestFirst = runs.map(jobIdOf).toReversed();
  const bySchedule = `scheduleId=${schedule.id}`;
  expect(await idsOf(bySchedule)).toEqual(newestFirst);
  const page = await list(`${bySchedule}&limit=1`);
  const rest = await list(`${bySchedule}&limit=1&cursor=${page.nextCursor}`);
  expect([...page.items, ...rest.items].map(({ id }) => id)).toEqual(newestFirst);
  await eventually(
    () => idsOf(`${bySchedule}&status=succeeded`),
    (ids) => ids.length === 2,
  );
  expect(await idsOf(bySchedule, clientOf('elsewhere'))).toEqual([]);
  const ofOther = jobIdOf(await triggerSchedule(client, other.id));
  expect(await idsOf(`${bySchedule},${other.id}`)).toEqual([ofOther, ...newestFirst]);
  expect(await idsOf(`${bySchedule}&scheduleId=${other.id}`)).toEqual([ofOther, ...newestFirst]);

  const { id: approvalId } = await createRequest(client, echoJob);
  const approver = fixture.app.client.as({ tenant, actor: 'bob', roles: 'approver' });
  const { jobId } = await approveAndWait(approver, approvalId);
  expect(await idsOf(`approvalId=${approvalId}`)).toEqual([jobId]);
  expect(await idsOf(`approvalId=${approvalId}&${bySchedule}`)).toEqual([]);

  for (const query of ['scheduleId=nightly', `webhookId=${schedule.id}`, 'approvalId=']) {
    const problem = await client.get<ProblemBody>(`/api/jobs?${query}`).expect(400);
    expect(problem.errors?.[0]?.pointer).toBe(`/${query.split('=')[0]}/0`);
  }
});

test('jobs of every source end while a restore has locked the tables that it replaces', async () => {
  const tenant = 'restored';
  const client = clientOf(tenant);
  const approver = fixture.app.client.as({ tenant, actor: 'bob', roles: 'approver' });
  const answers = new Map<string, ServerResponse>();
  const requestTo = (path: string) => {
    fixture.sink.respond(path, (_request, response) => void answers.set(path, response));
    return { method: 'POST', url: fixture.sink.url(path) };
  };
  requestTo('/delivered');
  const webhook = await register(client, '/delivered', { eventTypes: ['schedule.created'] });
  const { id: scheduleId } = await createMinutelySchedule(client, {
    enabled: false,
    overlapPolicy: 'bufferOne',
    jobType: 'http.request',
    payload: requestTo('/by-schedule'),
  });
  const bySchedule = jobIdOf(await triggerSchedule(client, scheduleId));
  const { id: byApi } = await client
    .post<JobRecord>('/api/jobs', { type: 'http.request', payload: requestTo('/by-api') })
    .expect(201);
  const request = await createRequest(client, {
    jobType: 'http.request',
    jobPayload: requestTo('/by-approval'),
  });
  await approve(approver, request.id).expect(200);
  await eventually(
    () => answers.size,
    (count) => count === 4,
  );

  await fixture.app.deps.db.transaction(async (trx) => {
    const names = TABLES.filter(({ mode }) => mode === 'state').map(({ name }) => name);
    await trx.raw(`LOCK TABLE ${names.join(', ')} IN EXCLUSIVE MODE`);
    for (const response of answers.values()) response.writeHead(204).end();
    for (const id of [bySchedule, byApi])
      await eventually(
        () => readJob(client, id),
        ({ status }) => status === 'succeeded',
        { withinMs: 10_000 },
      );
    await eventually(
      () => client.get<{ execution: string }>(`/api/workflows/${request.id}`).expect(200),
      ({ execution }) => execution === 'succeeded',
    );
    expect(await waitForDelivery(client, webhook.id)).toMatchObject({ status: 'succeeded' });
  });
});
