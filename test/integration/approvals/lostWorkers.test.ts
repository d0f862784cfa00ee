import { expect, test } from '@jest/globals';
import { approve, createRequest, echoJob, withApprovals } from '../../support/approvals.ts';

const { fixture, users } = withApprovals({}, { idle: true });

const record = (id: string) => fixture.app.deps.db('approvals').where({ id }).first();

test('a request whose execution has ended five workers fails, and is executed before that', async () => {
  const { requester, decider } = users();
  const { execution } = fixture.app.deps.approvals;
  const requests = [
    await createRequest(requester, echoJob),
    await createRequest(requester, echoJob),
  ];
  const [first, second] = requests.map(({ id }) => id) as [string, string];
  for (const id of [first, second]) await approve(decider, id).expect(200);
  expect(await execution.createBoundJob(first, 5)).toBe(0);
  expect(await record(first)).toMatchObject({
    execution: 'failed',
    error: { code: 'worker_lost' },
    job_id: null,
  });
  expect(await execution.createBoundJob(second, 4)).toBe(0);
  expect(await record(second)).toMatchObject({ execution: 'running' });
});
