import { expect, test } from '@jest/globals';
import type { JobSummary } from '../../../api/jobs/schemas.ts';
import type { ProblemBody } from '../../support/client.ts';
import { approveAndWait, createRequest, echoJob } from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createMinutelySchedule,
  jobIdOf,
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
  await createMinutelySchedule(client);
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

  const { id: approvalId } = await createRequest(client, echoJob);
  const approver = fixture.app.client.as({ tenant, actor: 'bob', roles: 'approver' });
  const { jobId } = await approveAndWait(approver, approvalId);
  expect(await idsOf(`approvalId=${approvalId}`)).toEqual([jobId]);
  expect(await idsOf(`approvalId=${approvalId}&${bySchedule}`)).toEqual([]);

  for (const query of ['scheduleId=nightly', `webhookId=${schedule.id}`, 'approvalId=']) {
    const problem = await client.get<ProblemBody>(`/api/jobs?${query}`).expect(400);
    expect(problem.errors?.[0]?.pointer).toBe(`/${query.split('=')[0]}`);
  }
});
