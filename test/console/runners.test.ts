import { mkdtempSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { createLog } from '../../platform/log.ts';
import { readRunnerConfig } from '../../runner/config.ts';
import { startRunner, type Runner } from '../../runner/process.ts';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

const FOLDER = mkdtempSync(path.join(os.tmpdir(), 'holdfast-console-runner-'));
const VALUE = 'hunter2-hunter2-hunter2';

describeConsole(
  'runners and secrets',
  (console) => {
    let someone: TestUser;
    let runner: Runner | undefined;

    beforeAll(async () => {
      someone = await createUser(console.app, 'platform-admin');
      await mkdir(path.join(FOLDER, 'types'));
      await writeFile(
        path.join(FOLDER, 'types', 'report.yaml'),
        JSON.stringify({
          apiVersion: 'holdfast/v1',
          name: 'edge.report',
          summary: 'Reports the edge',
          pool: 'edge',
          payload: { type: 'object' },
          secrets: { API_TOKEN: { secret: 'edge-key' } },
          run: { argv: ['bash', '-c', 'echo "port,up" > $HOLDFAST_ARTIFACTS/ports.csv'] },
        }),
      );
    });
    afterAll(async () => {
      await runner?.stop();
      await rm(FOLDER, { recursive: true, force: true });
    });

    /** Starts a runner as the page says, with what it shows. */
    async function startAsShown(token: string, command: string): Promise<void> {
      const shown = Object.fromEntries(
        [...command.matchAll(/(HOLDFAST_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
      );
      const config = readRunnerConfig({
        ...shown,
        HOLDFAST_RUNNER_TOKEN_FILE: undefined,
        HOLDFAST_RUNNER_TOKEN: token,
        HOLDFAST_URL: console.base,
        HOLDFAST_RUNNER_TYPES: path.join(FOLDER, 'types'),
        HOLDFAST_RUNNER_FOLDER: path.join(FOLDER, 'work'),
        HOLDFAST_STOP_GRACE_MS: '0',
        TEMPORAL_ADDRESS: console.app.env.TEMPORAL_ADDRESS,
      });
      const log = createLog('silent', false);
      runner = await startRunner({ config, temporal: console.app.deps.temporal, log });
    }

    /** Sends what is on the page as text, with the values of its fields. */
    const everythingOn = (page: Page) =>
      page.evaluate<string>(
        `document.documentElement.outerHTML + [...document.querySelectorAll('input, textarea')].map((each) => each.value)`,
      );

    test('a pool is created, gets a token, and its runner is shown as it starts', async () => {
      const page = await console.open(someone, '/runners');
      await page.getByText('No pools yet').waitFor();
      await page.getByRole('link', { name: 'New pool' }).first().click();
      await page.getByLabel('Name').fill('Edge');
      await page.getByRole('button', { name: 'Create pool' }).click();
      await page.getByText(/^must be 1 to 63/).waitFor();
      await page.getByLabel('Name').fill('edge');
      await page.getByRole('button', { name: 'Create pool' }).click();
      await page.getByText('No runners', { exact: true }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);

      await page.getByRole('button', { name: 'New runner token' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Create token' }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByRole('button', { name: 'Create token' }).click();
      const token = (await dialog.locator('[data-secret]').textContent()) ?? '';
      expect(token).toMatch(/^hfw_/);
      const command = await dialog.getByText(/HOLDFAST_ROLE=runner/).textContent();
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByRole('button', { name: 'I have stored it' }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(await everythingOn(page)).not.toContain(token);

      await startAsShown(token, command ?? '');
      await page.getByRole('cell', { name: 'Running' }).waitFor();
      await page.getByRole('link', { name: 'edge.report' }).waitFor();
      const remove = page.getByRole('button', { name: 'Delete' });
      expect(await remove.getAttribute('aria-disabled')).toBe('true');
      await page.getByRole('link', { name: os.hostname() }).click();
      await page.getByRole('heading', { name: 'Job types announced' }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      const id = assertDefined(/rnr_\w+/.exec(page.url()), 'id of the runner')[0];
      await page.goto(`/id/${id}`);
      await page.getByRole('heading', { name: os.hostname() }).waitFor();
      await page.goto('/runners');
      await page.getByRole('row', { name: /edge.report/ }).waitFor();
    });

    test('a secret is set and replaced, and its value is never shown again', async () => {
      const page = await console.open(someone, '/secrets/new');
      const answers: string[] = [];
      page.on('response', (response) => {
        if (new URL(response.url()).pathname.startsWith('/api/') && response.status() !== 204)
          void response.text().then(
            (text) => answers.push(text),
            () => undefined,
          );
      });
      await page.getByLabel('Name').fill('edge-key');
      await page.locator('input[type=password]').fill(VALUE);
      await page.getByRole('combobox', { name: 'Pools' }).fill('edge');
      await page.keyboard.press('Enter');
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Create secret' }).click();
      await page.waitForURL('**/secrets/sec_*');
      await page.getByRole('cell', { name: 'Created' }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);

      // Someone else changes it while the dialog is open.
      const id = assertDefined(/sec_\w+/.exec(page.url()), 'id of the secret')[0];
      await page.getByRole('button', { name: 'Replace value' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.locator('input[type=password]').fill(`${VALUE}-2`);
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByRole('button', { name: 'Replace value' }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('cell', { name: 'Value replaced' }).waitFor();
      expect(await everythingOn(page)).not.toContain(VALUE);
      expect(page.url()).not.toContain(VALUE);
      expect(answers.filter((text) => text.includes(VALUE))).toEqual([]);

      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Description').fill('Mine');
      await admin(console.app).put(`/api/secrets/${id}`, { description: 'Theirs' }).expect(200);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('dialog').getByText('Theirs').first().waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await admin(console.app).get(`/api/secrets/${id}`).expect(200)).toMatchObject({
        description: 'Theirs',
        pools: ['edge'],
      });
    });

    test('a job gets the secret and leaves an artifact, which is saved', async () => {
      const root = admin(console.app);
      await root.post('/api/job-types/edge.report/accept', {}).expect(200);
      const job = await root
        .post<JobRecord>('/api/jobs', { type: 'edge.report', payload: {} }, { prefer: 'wait=20' })
        .expect(201);
      expect(job.status).toBe('succeeded');
      const page = await console.open(someone, `/jobs/${job.id}`);
      const saving = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download ports.csv' }).click();
      const download = await saving;
      expect(download.suggestedFilename()).toBe('ports.csv');
      expect(await readFile(await download.path(), 'utf8')).toBe('port,up\n');
      expect(await accessibilityProblems(page)).toEqual([]);

      await page.goto('/job-types/edge.report');
      await page.getByText('Platform administrator').waitFor();
      await page.getByRole('link', { name: 'edge-key' }).click();
      await page.getByRole('grid').getByRole('link', { name: 'edge-key' }).click();
      await page.getByRole('cell', { name: /Released to attempt 1 in the pool edge/ }).waitFor();
    });

    test('a job without a runner says why it waits; without its type, the pool can be deleted', async () => {
      const root = admin(console.app);
      await assertDefined(runner, 'runner').stop();
      runner = undefined;
      const job = await root
        .post<JobRecord>('/api/jobs', { type: 'edge.report', payload: {} })
        .expect(201);
      const page = await console.open(someone, '/runners/pools/edge');
      await page.getByRole('cell', { name: /No runner has reported/ }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await root.post(`/api/jobs/${job.id}/cancel`).expect(202);
      await root.get(`/api/jobs/${job.id}`, { prefer: 'wait=20' }).expect(200);
      await page.goto('/job-types/edge.report');
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete job type' }).click();
      await page.waitForURL('**/job-types');
      await page.goto('/runners/pools/edge');
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete pool' }).click();
      await page.getByText('No pools yet').waitFor();
    });

    test('who may not read them sees neither page', async () => {
      const page = await console.open(await createUser(console.app, 'viewer'), '/secrets');
      await page.getByText('Secrets: not for your roles').waitFor();
      const rail = page.getByRole('navigation', { name: 'Pages' });
      expect(await rail.getByRole('link', { name: /Runners|Secrets/ }).count()).toBe(0);
    });
  },
  { HOLDFAST_BACKUP_DIR: path.join(FOLDER, 'backups') },
);
