import { describe, expect, it } from '@jest/globals';
import {
  attemptsOf,
  relatedIds,
  temporalLink,
  waitingText,
  whyNotCancel,
  whyNotRetry,
} from '../../../ui/areas/jobs/jobText.ts';
import {
  inTenant,
  whereOfTarget,
  whyNotCreate,
  whyNotRun,
  whyNotStart,
} from '../../../ui/parts/records/jobTarget.ts';
import { targetRequest } from '../../../ui/parts/records/target.ts';

const line = (attempt: number, second: number, message: string, level = 'info') => ({
  attempt,
  at: `2026-11-21T12:00:0${second}.000Z`,
  level: level as 'info' | 'error',
  message,
});

describe('the attempts of a job', () => {
  const first = [
    line(0, 0, 'Waits for a slot'),
    line(1, 1, 'Attempt 1 started'),
    line(1, 2, 'Attempt 1 failed: timed_out: too long; next attempt in 1 s', 'error'),
  ];

  it('are those of its log, with their times and why they failed', () => {
    const lines = [...first, line(2, 4, 'Attempt 2 started'), line(2, 5, 'Slept')];
    const job = {
      status: 'succeeded',
      attempts: 2,
      finishedAt: '2026-11-21T12:00:06.000Z',
    } as const;
    expect(attemptsOf(lines, job)).toEqual([
      {
        attempt: 1,
        startedAt: first[1]?.at,
        endedAt: first[2]?.at,
        status: 'failed',
        message: 'timed_out: too long; next attempt in 1 s',
      },
      {
        attempt: 2,
        startedAt: '2026-11-21T12:00:04.000Z',
        endedAt: job.finishedAt,
        status: 'succeeded',
        message: null,
      },
    ]);
  });

  it('have failed while the next one is due, and run while it runs', () => {
    const waiting = attemptsOf(first, { status: 'running', attempts: 1, finishedAt: null });
    expect(waiting).toMatchObject([{ status: 'failed', endedAt: first[2]?.at }]);
    const running = attemptsOf([...first, line(2, 4, 'Attempt 2 started')], {
      status: 'running',
      attempts: 2,
      finishedAt: null,
    });
    expect(running.at(-1)).toMatchObject({ status: 'running', endedAt: null, message: null });
  });
});

describe('a job', () => {
  const job = {
    type: 'core.echo',
    status: 'failed' as const,
    source: { kind: 'api' as const, id: null },
    dataPurgedAt: null,
    cancelRequestedAt: null,
  };
  const types = [
    { name: 'core.echo', createdOnlyBy: null },
    { name: 'webhook.deliver', createdOnlyBy: 'webhooks' },
  ];

  it('says why it can be neither cancelled nor retried', () => {
    expect(whyNotRetry(job, types)).toBeUndefined();
    expect(whyNotCancel(job)).toBe('The job has ended.');
    expect(whyNotCancel({ ...job, status: 'running' })).toBeUndefined();
    expect(whyNotCancel({ status: 'running', cancelRequestedAt: 'now' })).toContain('being');
    expect(whyNotRetry({ ...job, status: 'queued' }, types)).toContain('not ended');
    expect(whyNotRetry({ ...job, dataPurgedAt: 'now' }, types)).toContain('purged');
    expect(whyNotRetry({ ...job, type: 'webhook.deliver' }, types)).toContain('webhooks');
    const approved = { ...job, source: { kind: 'approval' as const, id: 'apr' } };
    expect(whyNotRetry(approved, types)).toContain('approval');
  });

  it('links to its workflow, if there is one', () => {
    const ui = { url: 'http://localhost:8233/', namespace: 'default' };
    const found = { workflowId: 'job:job_1', workflowForgotten: false };
    expect(temporalLink(found, ui)).toEqual({
      href: 'http://localhost:8233/namespaces/default/workflows/job%3Ajob_1',
    });
    expect(temporalLink(found, null)).toHaveProperty('reason');
    expect(temporalLink({ ...found, workflowId: null }, ui)).toHaveProperty('reason');
    expect(temporalLink({ ...found, workflowForgotten: true }, ui)).toHaveProperty('reason');
  });

  it('names the records of its payload and result, each once', () => {
    const id = (letters: string) => `${letters}_${'0'.repeat(26)}`;
    const value = [
      { scheduleId: id('sch'), text: 'sch_1', own: id('job') },
      { items: [{ prefixId: id('pfx') }, { again: id('sch') }] },
    ];
    expect(relatedIds(value, id('job'))).toEqual([
      { id: id('sch'), field: 'scheduleId' },
      { id: id('pfx'), field: 'prefixId' },
    ]);
    const many = Array.from({ length: 50 }, (_, n) => `dev_${String(n).padStart(26, '0')}`);
    expect(relatedIds(many, '')).toHaveLength(20);
  });
});

describe('a job type', () => {
  const type = {
    name: 'net.audit',
    state: 'accepted',
    mayRun: false,
    access: 'open',
    permission: null,
  } as const;
  const holds =
    (...permissions: string[]) =>
    (permission: string) =>
      permissions.includes(permission) ? undefined : `This needs the permission ${permission}.`;

  it('says why it cannot be run: its state, a permission, or a role that names it', () => {
    const all = holds('job:write', 'backup:write');
    expect(whyNotRun({ ...type, mayRun: true }, all)).toBeUndefined();
    expect(whyNotRun({ ...type, state: 'waiting' }, all)).toContain('waits to be accepted');
    expect(whyNotRun({ ...type, state: 'disabled' }, all)).toContain('is disabled');
    expect(whyNotRun(type, holds())).toContain('job:write');
    const backup = { ...type, permission: 'backup:write' };
    expect(whyNotRun(backup, holds('job:write'))).toContain('backup:write');
    expect(whyNotRun({ ...type, access: 'granted' }, all)).toContain('names the type net.audit');
    expect(whyNotRun(type, all)).toBe('You may not create such jobs here.');
    // The rights of another tenant are known by their permissions only.
    const elsewhere = inTenant(backup, false);
    expect(whyNotCreate(elsewhere, all)).toBeUndefined();
    expect(whyNotCreate(elsewhere, holds('job:write'))).toContain('backup:write');
  });

  it('of a schedule needs its permission, and a role that names it, but no job:write by itself', () => {
    const all = holds('job:write', 'backup:write');
    const granted = { ...type, access: 'granted' } as const;
    expect(whyNotStart(type, holds())).toBeUndefined();
    expect(whyNotStart({ ...type, permission: 'backup:write' }, holds())).toContain('backup:');
    expect(whyNotStart(granted, holds())).toContain('job:write');
    expect(whyNotStart(granted, all)).toContain('names the type net.audit');
    expect(whyNotStart({ ...granted, mayRun: true }, all)).toBeUndefined();
  });

  it('has jobs where their target is', () => {
    const site = { id: 'sit_1', tenantId: 'red' };
    expect(whereOfTarget('site', site)).toEqual({ tenantId: 'red', siteId: 'sit_1' });
    const device = { id: 'dev_1', tenantId: 'red', siteId: 'sit_1' };
    expect(whereOfTarget('device', device)).toEqual({
      tenantId: 'red',
      siteId: 'sit_1',
      deviceId: 'dev_1',
    });
    expect(targetRequest('device', 'dev_1')).toEqual({ kind: 'device', id: 'dev_1' });
    expect(targetRequest(undefined, 'dev_1')).toBeUndefined();
    expect(targetRequest('site', undefined)).toBeUndefined();
  });
});

describe('a queued job', () => {
  it('says what it waits for', () => {
    expect(waitingText(null)).toContain('a free slot of a worker');
    expect(waitingText({ pool: 'ams', runners: 0, reason: 'no_runner' })).toBe(
      'Waits for a runner of the pool ams; no runner has reported in the last 30 seconds.',
    );
    expect(waitingText({ pool: 'ams', runners: 2, reason: 'pool_full' })).toContain(
      'the 2 runners of the pool ams',
    );
  });
});
