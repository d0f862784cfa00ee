import { expect, test } from '@jest/globals';
import { approve, createRequest, echoJob, withApprovals } from '../../support/approvals.ts';

const { fixture, users } = withApprovals({}, { idle: true });

const record = (id: string) => fixture.app.deps.db('approvals').where({ id }).first();

test('a request whose job cannot be created has failed, and is not executed after that', async () => {
  const { requester, decider } = users();
  const { execution } = fixture.app.deps.approvals;
  const { id } = await createRequest(requester, echoJob);
  const error = { code: 'worker_lost', message: 'Five workers were lost' };
  await execution.failExecution(id, error);
  expect(await record(id)).toMatchObject({ status: 'pending', execution: 'none' });
  await approve(decider, id).expect(200);
  await execution.failExecution(id, error);
  expect(await execution.createBoundJob(id)).toBe(0);
  expect(await record(id)).toMatchObject({ execution: 'failed', error, job_id: null });
});
