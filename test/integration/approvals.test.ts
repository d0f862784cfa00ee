import { describe, expect, test } from '@jest/globals';
import {
  approve,
  cancel,
  echo,
  eventsOf,
  prefix,
  reject,
  request,
  trailOf,
  untilStatus,
  withApprovals,
} from '../support/approvals.ts';

const { bed, people } = withApprovals();

describe('the life of a request', () => {
  test('approved: its job runs as the child of the run that waited, and the request has its end', async () => {
    const { asker, decider } = people();
    const made = await request(asker, { ...echo, title: 'say hello' });
    expect(made).toMatchObject({
      status: 'pending',
      execution: 'none',
      jobType: 'core.echo',
      jobPayload: { hello: 'world' },
      requiredApprovals: 1,
      approvals: 0,
      workflowId: `approval:${made.id as string}`,
    });
    const answer = await approve(
      decider,
      made.id,
      { comment: 'go on', contentHash: made.contentHash },
      { prefer: 'wait=20' },
    );
    expect([answer.status, answer.body]).toMatchObject([
      200,
      {
        status: 'approved',
        execution: 'succeeded',
        approvals: 1,
        closedBy: 'decider',
        closeComment: 'go on',
      },
    ]);
    expect(answer.body.decisions).toMatchObject([
      { actorId: 'decider', outcome: 'approved', comment: 'go on', contentHash: made.contentHash },
    ]);
    const job = (await asker.get(`/api/jobs/${answer.body.jobId as string}`)).body;
    expect(job).toMatchObject({
      status: 'succeeded',
      createdBy: 'asker',
      source: { kind: 'approval', id: made.id },
      result: { hello: 'world' },
    });
    const parent = await bed.app.deps.link.call(
      5_000,
      async (client) =>
        (await client.workflow.getHandle(job.workflowId).describe()).raw.workflowExecutionInfo
          ?.parentExecution?.workflowId,
    );
    expect(parent).toBe(made.workflowId);
    expect(await trailOf(bed.app, made.id)).toEqual([
      'workflow.create',
      'workflow.approve',
      'workflow.execute',
      'workflow.succeed',
    ]);
    expect(await eventsOf(bed.app, made.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.approved',
      'workflow.executed',
    ]);
  });
  test('a decision does not wait for what other people, or a later time, are to bring', async () => {
    const { asker, decider, other } = people();
    const [two, later] = [
      await request(asker, { ...echo, requiredApprovals: 2 }),
      await request(asker, { ...echo, executeAt: new Date(Date.now() + 3_600_000).toISOString() }),
    ];
    const began = Date.now();
    expect((await approve(decider, two.id, {}, { prefer: 'wait=20' })).body).toMatchObject({
      status: 'pending',
      approvals: 1,
    });
    expect((await approve(decider, later.id, {}, { prefer: 'wait=20' })).body).toMatchObject({
      status: 'approved',
      execution: 'queued',
    });
    expect(Date.now() - began).toBeLessThan(10_000);
    expect(
      (await other.get('/api/workflows?execution=queued')).body.items.map(({ id }: any) => id),
    ).toEqual([later.id]);
  });
  test('rejected: nothing runs', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    expect((await reject(decider, made.id, { comment: 'no' })).body).toMatchObject({
      status: 'rejected',
      execution: 'none',
      jobId: null,
      closeComment: 'no',
    });
    const state = await untilStatus(asker, made.id, 'rejected');
    expect(state.ifApproved).toBe('It is rejected; nothing runs.');
    expect(await eventsOf(bed.app, made.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.rejected',
    ]);
  });
  test('expired: nobody decides any more', async () => {
    const { asker, decider } = people();
    const made = await request(asker, {
      ...echo,
      expiresAt: new Date(Date.now() + 1_500).toISOString(),
    });
    await untilStatus(asker, made.id, 'expired');
    expect((await approve(decider, made.id)).body).toMatchObject({
      status: 409,
      code: 'approval_closed',
    });
    expect([...new Set(await eventsOf(bed.app, made.id))]).toEqual([
      'workflow.created',
      'workflow.reminder',
      'workflow.expired',
    ]);
  });
  test('a change is applied, all of it', async () => {
    const { asker, decider, tenant } = people();
    const made = await request(asker, prefix('10.1.0.0/16', { tenantId: tenant }));
    expect(made.effects).toMatchObject([
      {
        action: 'create',
        resource: 'prefixes',
        id: 'new:1',
        label: '10.1.0.0/16',
        reason: 'requested',
        version: null,
      },
    ]);
    const { body } = await approve(decider, made.id, {}, { prefer: 'wait=20' });
    expect(body).toMatchObject({
      status: 'approved',
      execution: 'succeeded',
      jobType: 'inventory.apply',
    });
    const { items } = (await asker.get(`/api/inventory/prefixes?tenantId=${tenant}`)).body;
    expect(items).toMatchObject([{ cidr: '10.1.0.0/16' }]);
  });
  test('cancelled by whoever asked', async () => {
    const { asker, decider } = people();
    const made = await request(asker, echo);
    expect((await cancel(asker, made.id, { comment: 'not needed' })).body).toMatchObject({
      status: 'cancelled',
      closedBy: 'asker',
      closeComment: 'not needed',
    });
    expect((await approve(decider, made.id)).body).toMatchObject({ code: 'approval_closed' });
    expect((await cancel(asker, made.id)).body).toMatchObject({ code: 'approval_closed' });
  });
});
