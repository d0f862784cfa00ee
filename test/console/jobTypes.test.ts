import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import type { TestClient } from '../support/client.ts';
import { createRunnerToken, definition, digestOf } from '../support/runner.ts';
import { admin, createUser } from '../support/users.ts';

describeConsole('job types of runners', (console) => {
  let runner: TestClient;
  const runnerId = randomUUID();

  /** The runner says what it can run; the text is the version of its code. */
  const announce = (...types: { name: string; more?: object; code?: string }[]) =>
    runner
      .post('/api/runner/announce', {
        runnerId,
        name: 'host-1',
        version: '1.0',
        slots: 4,
        pool: 'default',
        types: types.map(({ name, more, code = name }) => ({
          digest: digestOf(code),
          definition: definition(name, more),
        })),
      })
      .expect(200);

  beforeAll(async () => {
    // The owner of the account that the token is for.
    await createUser(console.app, 'platform-admin');
    runner = await createRunnerToken(console.app, 'default');
  });

  test('about a site are started with the keyboard, and wait for a runner', async () => {
    const root = admin(console.app);
    for (const name of ['core-1', 'core-2'])
      await root.post('/api/inventory/sites', { name }).expect(201);
    await root.post('/api/inventory/regions', { name: 'ams' }).expect(201);
    const reference = { type: 'string', 'x-holdfast-ref': 'regions' };
    const payload = { type: 'object', properties: { near: reference }, required: ['near'] };
    await announce({ name: 'net.audit', more: { targets: 'site', payload } });
    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, '/jobs/new?type=net.audit');
    const choice = page.getByRole('button', { name: /^net\.audit/ });
    await choice.getByText('The type waits to be accepted.').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);

    await root.post('/api/job-types/net.audit/accept', {}).expect(200);
    await page.reload();
    const start = page.getByRole('button', { name: 'Start job' });
    expect(await start.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('combobox', { name: 'Site' }).fill('core');
    await page.getByRole('option', { name: 'core-2' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.type('-2');
    await page.getByRole('option', { name: 'core-1' }).waitFor({ state: 'detached' });
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Near' }).fill('am');
    await page.getByRole('option', { name: 'ams' }).click();
    await runner.post('/api/runner/leave', { runnerId, pool: 'default' }).expect(204);
    await start.click();
    await page.waitForURL('**/jobs/job_*');
    await page.getByRole('link', { name: 'core-2' }).waitFor();
    await page
      .getByText(
        /Waits for a runner of the pool default; no runner has reported in the last 30 seconds/,
      )
      .waitFor();
    const { items } = await operator.client
      .get<{ items: JobRecord[] }>('/api/jobs?type=net.audit')
      .expect(200);
    expect(items).toMatchObject([{ target: { kind: 'site' }, status: 'queued' }]);
  });

  test('about a site are scheduled for it, and for another one later', async () => {
    const root = admin(console.app);
    for (const name of ['plan-1', 'plan-2'])
      await root.post('/api/inventory/sites', { name }).expect(201);
    await announce({ name: 'net.plan', more: { targets: 'site' } });
    await root.post('/api/job-types/net.plan/accept', {}).expect(200);
    const page = await console.open(await createUser(console.app, 'operator'), '/schedules/new');
    const site = page.getByRole('combobox', { name: 'Site' });
    const choose = async (name: string) => {
      await site.fill(name);
      await page.getByRole('option', { name }).click();
    };
    await page.getByLabel('Name').fill('Plan');
    await page.getByLabel('Expression').fill('0 1 * * *');
    await page.getByRole('combobox', { name: 'Job type' }).fill('net.plan');
    await page.getByRole('option', { name: /net\.plan/ }).click();
    const create = page.getByRole('button', { name: 'Create schedule' });
    await site.waitFor();
    expect(await create.getAttribute('aria-disabled')).toBe('true');
    await choose('plan-1');
    expect(await accessibilityProblems(page)).toEqual([]);
    await create.click();
    await page.waitForURL('**/schedules/sch_*');
    await page.getByRole('link', { name: 'plan-1' }).waitFor();
    await page.getByRole('link', { name: 'Edit' }).click();
    await choose('plan-2');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByRole('link', { name: 'plan-2' }).waitFor();
  });

  test('are accepted in the version that the page names, and disabled', async () => {
    await announce({ name: 'dns.check' });
    const root = admin(console.app);
    await root.post('/api/job-types/dns.check/accept', {}).expect(200);
    const payload = { type: 'object', properties: { zone: { type: 'string' } } };
    await announce({ name: 'dns.check', more: { payload }, code: 'dns.check 2' });
    const page = await console.open(await createUser(console.app, 'platform-admin'), '/job-types');
    await page.getByRole('link', { name: 'dns.check' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'dns.check' }).click();
    await page.getByRole('button', { name: 'Accept', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('row', { name: /Payload schema/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    // Someone else is first: nothing is accepted unseen.
    await root.post('/api/job-types/dns.check/disable', {}).expect(200);
    const version = digestOf('dns.check 2');
    const confirm = dialog.getByRole('button', { name: `Accept version ${version.slice(0, 12)}` });
    await confirm.click();
    await dialog.getByRole('alert').waitFor();
    await confirm.click();
    await dialog.waitFor({ state: 'detached' });
    expect(await root.get('/api/job-types/dns.check').expect(200)).toMatchObject({
      state: 'accepted',
      digest: version,
    });
    await page.getByRole('button', { name: 'Disable' }).click();
    await dialog.getByRole('button', { name: 'Disable job type' }).click();
    await page.locator('header').getByText('Disabled', { exact: true }).waitFor();

    const viewer = await console.open(
      await createUser(console.app, 'viewer'),
      '/job-types/dns.check',
    );
    const accept = viewer.getByRole('button', { name: 'Accept', exact: true });
    expect(await accept.getAttribute('aria-disabled')).toBe('true');
  });
});
