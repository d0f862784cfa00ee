import { expect, test } from '@jest/globals';
import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { approve, createRequest, echoJob, withApprovals } from '../../support/approvals.ts';
import { withClockAhead } from '../../support/clock.ts';

const { fixture, users } = withApprovals({}, { idle: true });

const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();
const record = (id: string) => fixture.app.deps.db('approvals').where({ id }).first();

test('a worker whose clock is ahead does not execute a change before its time', async () => {
  const { requester, decider } = users();
  const { id } = await createRequest(requester, { ...echoJob, executeAt: inHours(1) });
  await approve(decider, id).expect(200);
  const { execution } = fixture.app.deps.approvals;
  const [state, waitMs] = await withClockAhead(2 * HOUR_MS, async () => [
    await execution.loadState(id),
    await execution.createBoundJob(id),
  ]);
  expect(state).toMatchObject({ phase: 'deferred' });
  expect(waitMs).toBeGreaterThan(HOUR_MS - 60_000);
  expect(await record(id)).toMatchObject({ execution: 'queued', job_id: null });
});

test('processes whose clock is ahead neither expire a request nor remind of it too early', async () => {
  const { requester, decider } = users();
  const { id } = await createRequest(requester, { ...echoJob, expiresAt: inHours(24) });
  const { execution, reconcile } = fixture.app.deps.approvals;
  await withClockAhead(2 * DAY_MS, async () => {
    expect(await execution.loadState(id)).toMatchObject({ phase: 'pending' });
    await execution.sendReminder(id);
    await execution.expire(id);
    await reconcile(AbortSignal.timeout(20_000));
  });
  expect(await record(id)).toMatchObject({ status: 'pending', reminders: 0 });
  await withClockAhead(2 * DAY_MS, () => approve(decider, id).expect(200));
  expect(await record(id)).toMatchObject({ status: 'approved' });
});
