import { expect, test } from '@jest/globals';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { changeRequest, createRequest, echoJob } from '../support/approvals.ts';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser } from '../support/users.ts';

const failingJob = {
  type: 'http.request',
  payload: { url: 'http://127.0.0.1:1/' },
  retryPolicy: { maxAttempts: 1 },
};

describeConsole('home', (console) => {
  test('of an empty installation says what to do first', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const page = await console.open(user);
    await page
      .getByRole('region', { name: 'First steps' })
      .getByText('npm run demo-data')
      .waitFor();
    await page.getByText('There is no full backup').waitFor();
    await page.getByText('Nothing waits for you').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('shows what waits for the reader with what changes, what is broken, and what has changed', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const page = await console.open(decider);
    const needs = page.getByRole('region', { name: 'Needs you' });
    await page.getByText('Nothing waits for you, no job failed in 24 hours').waitFor();
    // No event says that deliveries fail: the answer has an age.
    await page.getByText(/^Webhooks as of .*(now|ago)$/).waitFor();
    expect(await page.getByRole('region', { name: 'Protection' }).count()).toBe(0);
    // The page is open while all this happens.
    await admin(console.app).post('/api/inventory/sites', { name: 'ams1' }).expect(201);
    const { id } = await createRequest(asker.client, {
      title: 'A prefix for home',
      ...changeRequest(['create', 'prefixes', { cidr: '10.9.0.0/16' }]),
    });
    const failed = await admin(console.app)
      .post<JobRecord>('/api/jobs', failingJob, { prefer: 'wait=20' })
      .expect(201);
    // One that has retried for a month, and failed now.
    const early = { id: 'job_01jd0cmxk5e5v8kyzwq0q8s3rt', created_at: '2024-11-19T12:00:00Z' };
    await console.app.deps.db.raw(
      'INSERT INTO jobs SELECT (jsonb_populate_record(jobs, ?)).* FROM jobs WHERE id = ?',
      [JSON.stringify(early), failed.id],
    );
    await needs.getByText('Creates prefix 10.9.0.0/16').waitFor();
    await page.getByRole('region', { name: 'Broken now' }).getByText('http.request').waitFor();
    await page.reload();
    await page.getByText('failed 2 times with').waitFor();
    await page.getByRole('region', { name: 'Recent changes' }).getByText('ams1').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await needs.getByRole('link', { name: 'A prefix for home' }).click();
    await page.waitForURL(`**/approvals/${id}`);
  });

  test('shows own requests that failed', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { id } = await createRequest(asker.client, {
      title: 'A failing request',
      jobType: failingJob.type,
      jobPayload: failingJob.payload,
    });
    const approve = `/api/workflows/${id}/approve`;
    await decider.client.post(approve, {}, { prefer: 'wait=20' }).expect(200);
    const page = await console.open(asker);
    const needs = page.getByRole('region', { name: 'Needs you' });
    await needs.getByText('A failing request').waitFor();
    await needs.getByText('Execution failed').waitFor();
  });

  test('has every schedule that missed times, also beside one that has missed hundreds', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const { db, ids } = console.app.deps;
    const miss = async (name: string, count: number, minutesAgo: number) => {
      const schedule = { name, cronExpression: '0 0 1 1 *', jobType: 'core.echo', payload: {} };
      const { id } = await admin(console.app)
        .post<{ id: string }>('/api/schedules', schedule)
        .expect(201);
      const runs = Array.from({ length: count }, (_, index) => {
        const dueAt = new Date(Date.now() - (minutesAgo + index) * 60_000);
        return {
          id: ids.at('run', dueAt),
          schedule_id: id,
          tenant_id: 'platform',
          kind: 'scheduled',
          due_at: dueAt,
          outcome: 'skipped',
          reason: 'missed',
          caught_up: false,
          actor_id: 'root',
          decided_at: dueAt,
        };
      });
      await db('schedule_runs').insert(runs);
    };
    await miss('quiet', 3, 600);
    const page = await console.open(user);
    const broken = page.getByRole('region', { name: 'Broken now' });
    await broken.getByText(/quiet missed 3 times.*no process ran in time/).waitFor();
    await miss('noisy', 201, 1);
    await page.reload();
    await broken.getByText(/noisy missed at least 200 times/).waitFor();
    await broken.getByText(/quiet missed 3 times/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('says to readers of one site what they may see, and nothing of the rest', async () => {
    const site = await admin(console.app)
      .post<{ id: string }>('/api/inventory/sites', { name: 'one' })
      .expect(201);
    const user = await createUser(console.app, { roleId: 'operator', siteId: site.id });
    const page = await console.open(user);
    await page.getByText('no job that you may see failed in 24 hours').waitFor();
    expect(await page.getByText('All is well').count()).toBe(0);
    await page.goto('/schedules');
    await page.getByText('No schedules that you may see').waitFor();
  });

  test('of a user without a role says so, and so does every page', async () => {
    const user = await createUser(console.app);
    const page = await console.open(user);
    await page.getByText('You have no role yet').waitFor();
    await page.getByRole('status').getByText(user.username).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    for (const path of ['/jobs', '/schedules/new', '/approvals']) {
      await page.goto(path);
      await page.getByText('You have no role yet').waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
      expect(await page.locator('main form').count()).toBe(0);
    }
  });

  test('stays, when one of its reads fails', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    await createRequest(asker.client, { title: 'A job for home', ...echoJob });
    const context = await console.profileOf(decider);
    await context.route('**/api/jobs?*', (route) =>
      route.fulfill({
        status: 500,
        contentType: 'application/problem+json',
        body: JSON.stringify({
          title: 'Internal error',
          detail: 'The request failed.',
          code: 'internal',
          requestId: 'req_test',
        }),
      }),
    );
    const page = await context.newPage();
    await page.goto('/');
    const broken = page.getByRole('region', { name: 'Broken now' });
    await broken.getByRole('alert').getByText('req_test').waitFor();
    await page.getByText('Runs a job core.echo').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await context.unroute('**/api/jobs?*');
    await broken.getByRole('button', { name: 'Try again' }).click();
    await broken.getByRole('alert').waitFor({ state: 'detached' });
  });
});
