import { describe, expect, test } from '@jest/globals';
import type { ApprovalList } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import {
  approve,
  approveAndWait,
  auditActionsOf,
  cancel,
  createPrefix,
  createRequest,
  echoJob,
  eventTypesOf,
  reject,
  untilStatus,
  withApprovals,
} from '../../support/approvals.ts';
import type { ProblemBody } from '../../support/client.ts';

const { fixture, users } = withApprovals();

describe('the statuses of a request', () => {
  test('an approved request runs its job as a child workflow and finishes with it', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, { ...echoJob, title: 'say hello' });
    expect(created).toMatchObject({
      status: 'pending',
      execution: 'none',
      jobType: 'core.echo',
      jobPayload: { hello: 'world' },
      requiredApprovals: 1,
      approvals: 0,
      workflowId: `approval:${created.id}`,
    });
    const { contentHash } = created;
    const body = { comment: 'go on', contentHash };
    const finished = await approve(decider, created.id, body, { prefer: 'wait=20' }).expect(200);
    expect(finished).toMatchObject({
      status: 'approved',
      execution: 'succeeded',
      approvals: 1,
      closedBy: 'decider',
      closeComment: 'go on',
    });
    expect(finished.decisions).toMatchObject([
      { actorId: 'decider', outcome: 'approved', ...body },
    ]);
    const job = await requester.get<JobRecord>(`/api/jobs/${String(finished.jobId)}`).expect(200);
    expect(job).toMatchObject({
      status: 'succeeded',
      createdBy: 'asker',
      source: { kind: 'approval', id: created.id },
      result: { hello: 'world' },
    });
    const parent = await fixture.app.deps.temporal.call(20_000, async (client) => {
      const { raw } = await client.workflow.getHandle(`job:${job.id}`).describe();
      return raw.workflowExecutionInfo?.parentExecution?.workflowId;
    });
    expect(parent).toBe(created.workflowId);
    expect(await auditActionsOf(fixture.app, created.id)).toEqual([
      'workflow.create',
      'workflow.approve',
      'workflow.execute',
      'workflow.succeed',
    ]);
    expect(await eventTypesOf(fixture.app, created.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.approved',
      'workflow.executed',
    ]);
  });

  test('a decision does not wait for other deciders or for executeAt', async () => {
    const { requester, decider, other } = users();
    const executeAt = new Date(Date.now() + 3_600_000).toISOString();
    const two = await createRequest(requester, { ...echoJob, requiredApprovals: 2 });
    const later = await createRequest(requester, { ...echoJob, executeAt });
    const startedAt = Date.now();
    expect(await approveAndWait(decider, two.id)).toMatchObject({
      status: 'pending',
      approvals: 1,
    });
    expect(await approveAndWait(decider, later.id)).toMatchObject({
      status: 'approved',
      execution: 'queued',
    });
    // Each would have waited for 20 seconds.
    expect(Date.now() - startedAt).toBeLessThan(20_000);
    const { items } = await other.get<ApprovalList>('/api/workflows?execution=queued').expect(200);
    expect(items.map(({ id }) => id)).toEqual([later.id]);
  });

  test('a rejected request runs nothing', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    expect(await reject(decider, created.id, { comment: 'no' }).expect(200)).toMatchObject({
      status: 'rejected',
      execution: 'none',
      jobId: null,
      closeComment: 'no',
    });
    const rejected = await untilStatus(requester, created.id, 'rejected');
    expect(rejected.ifApproved).toBe('The request is rejected. Nothing runs.');
    expect(await eventTypesOf(fixture.app, created.id)).toEqual([
      'workflow.created',
      'workflow.decision.created',
      'workflow.rejected',
    ]);
  });

  test('an expired request cannot be decided', async () => {
    const { requester, decider } = users();
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const created = await createRequest(requester, { ...echoJob, expiresAt });
    await untilStatus(requester, created.id, 'expired');
    const problem = await approve<ProblemBody>(decider, created.id).expect(409);
    expect(problem.code).toBe('approval_closed');
    const types = await eventTypesOf(fixture.app, created.id);
    // A busy worker may have no time left to remind anybody.
    expect(types.filter((type) => type !== 'workflow.reminder')).toEqual([
      'workflow.created',
      'workflow.expired',
    ]);
  });

  test('an approved change is applied completely', async () => {
    const { requester, decider, tenant } = users();
    const created = await createRequest(
      requester,
      createPrefix('10.1.0.0/16', { tenantId: tenant }),
    );
    expect(created.effects).toMatchObject([
      {
        action: 'create',
        resource: 'prefixes',
        id: 'new:1',
        label: '10.1.0.0/16',
        reason: 'requested',
        version: null,
      },
    ]);
    expect(await approveAndWait(decider, created.id)).toMatchObject({
      status: 'approved',
      execution: 'succeeded',
      jobType: 'inventory.apply',
    });
    const { items } = await requester
      .get<{ items: { cidr: string }[] }>(`/api/inventory/prefixes?tenantId=${tenant}`)
      .expect(200);
    expect(items).toMatchObject([{ cidr: '10.1.0.0/16' }]);
  });

  test('the requester can cancel a pending request', async () => {
    const { requester, decider } = users();
    const created = await createRequest(requester, echoJob);
    expect(
      await cancel(requester, created.id, { comment: 'not needed' }).expect(200),
    ).toMatchObject({
      status: 'cancelled',
      closedBy: 'asker',
      closeComment: 'not needed',
    });
    const late = [
      approve<ProblemBody>(decider, created.id),
      cancel<ProblemBody>(requester, created.id),
    ];
    for (const response of late)
      expect(await response.expect(409)).toMatchObject({ code: 'approval_closed' });
  });
});
