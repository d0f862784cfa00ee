import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { BackupRecord } from '../../api/backups/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { describeConsole, describePages } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth } from '../support/console/page.ts';
import { admin, createUser, seedTenant, type TestUser } from '../support/users.ts';

const FOLDER = mkdtempSync(path.join(os.tmpdir(), 'holdfast-console-backups-'));

type WithId = { id: string };
type Site = WithId & { description: string };

const status = (page: Page, text: string) => page.getByRole('main').getByText(text);
/** A button that does something; those of a list's filters, which stay pressed, have the same names. */
const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).and(page.locator(':not([aria-pressed])'));

describeConsole(
  'backups',
  (console) => {
    let someone: TestUser;
    const sites: Record<string, string> = {};
    const root = () => admin(console.app);
    const siteOf = (name: string) => `/api/inventory/sites/${sites[name]}`;

    beforeAll(async () => {
      someone = await createUser(console.app, 'platform-admin');
      for (const name of ['ams1', 'fra1'])
        sites[name] = (await root().post<WithId>('/api/inventory/sites', { name }).expect(201)).id;
    });
    afterAll(() => rm(FOLDER, { recursive: true, force: true }));

    const makeBackup = (request: object) =>
      root().post<BackupRecord>('/api/backup/create', request, { prefer: 'wait=50' }).expect(201);

    /** Types the label of a backup into the dialog, and confirms. */
    async function confirm(page: Page, label: string, action: string): Promise<void> {
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox').fill(label);
      await dialog.getByRole('button', { name: action, exact: true }).click();
    }

    test('a backup is made and tested, and its page shows what it contains', async () => {
      const page = await console.open(someone, '/backups');
      await page.getByText('No backups yet').waitFor();
      await page.getByText('No schedule makes or tests backups.').waitFor();
      await page.keyboard.press('c');
      await page.getByLabel('Label').fill('Before the move');
      await page.getByRole('radio', { name: /^Chosen sections/ }).check();
      expect(await button(page, 'Make backup').getAttribute('aria-disabled')).toBe('true');
      await page.getByRole('checkbox', { name: 'Inventory' }).check();
      await page.getByText('Included by reference.').waitFor();
      await page.getByLabel('Daily').fill('7');
      expect(await accessibilityProblems(page)).toEqual([]);
      await button(page, 'Make backup').click();
      await page.waitForURL('**/backups/bkp_*');
      await status(page, 'Completed').waitFor();
      await page.getByRole('row', { name: /^Inventory .*Sites 2/ }).waitFor();
      await page.getByText('newest of its series, last of its day').waitFor();

      await button(page, 'Test restore').click();
      await page.getByRole('dialog').getByRole('button', { name: 'Start test restore' }).click();
      await page.getByText('A test restore has started').waitFor();
      await page.getByRole('row', { name: /Test restore Succeeded/ }).waitFor();
      await page.getByText('Never').waitFor({ state: 'detached' });
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('link', { name: 'Test restore', exact: true }).click();
      await page.getByText(/it can be restored/).waitFor();
      const id = assertDefined(/bkp_\w+/.exec(page.url()), 'id of the backup')[0];
      await page.goto(`/id/${id}`);
      await page.getByRole('heading', { name: 'Before the move' }).waitFor();
    });

    test('some sections, one tenant, or a damaged archive are no backup of the platform', async () => {
      const [backup] = (await root().get<{ backups: BackupRecord[] }>('/api/backup').expect(200))
        .backups;
      const { id, mode, tenantId, restoreTestedAt } = assertDefined(backup, 'backup');
      expect({ mode, tenantId }).toEqual({ mode: 'partial', tenantId: 'platform' });
      expect(restoreTestedAt).not.toBeNull();
      await seedTenant(console.app, 'acme');
      const ofTenant = {
        id: 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rt',
        tenant_id: 'acme',
        mode: 'full',
        label: 'Of acme',
        job_id: null,
      };
      const damaged = {
        id: 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rv',
        mode: 'full',
        archive_error: { code: 'archive_damaged', message: 'The archive is damaged.' },
        job_id: null,
      };
      const { db } = console.app.deps;
      for (const changed of [ofTenant, damaged])
        await db.raw(
          'INSERT INTO backups SELECT (jsonb_populate_record(backups, ?)).* FROM backups WHERE id = ?',
          [JSON.stringify(changed), id],
        );
      const schedule = (name: string, day: number, more: object) =>
        root()
          .post<WithId>('/api/backup/schedules', {
            name,
            cronExpression: `0 0 ${day} 1 *`,
            ...more,
          })
          .expect(201);
      const partial = await schedule('Some sections', 2, { mode: 'partial', sections: ['access'] });
      const page = await console.open(someone, '/');
      const protection = page.getByRole('region', { name: 'Protection' });
      await protection
        .getByText('There is no full backup of the platform that can be restored')
        .waitFor();
      await protection.getByText('No full backup of the platform has been test-restored').waitFor();
      await protection.getByText('No full backup is scheduled').waitFor();
      expect(await page.getByText('All is well').count()).toBe(0);
      const full = await schedule('All sections', 3, {});
      await protection.getByText('Next scheduled full backup').waitFor();
      for (const each of [partial, full])
        await root().delete(`/api/schedules/${each.id}`).expect(204);

      const reader = await createUser(console.app, { roleId: 'auditor', tenantId: 'acme' });
      const other = await console.open(reader, '/');
      await other.getByRole('link', { name: 'Of acme' }).first().waitFor();
      await db('backups').whereIn('id', [ofTenant.id, damaged.id]).delete();
    });

    test('a restore is previewed, refused when it is stale, and then makes what was shown', async () => {
      const backup = await makeBackup({ label: 'Nightly' });
      await root().put(siteOf('ams1'), { description: 'renumbered' }).expect(200);
      await root().delete(siteOf('fra1')).expect(204);
      await root().post('/api/inventory/sites', { name: 'newer1' }).expect(201);
      const page = await console.open(someone, `/backups/${backup.id}`);
      await page.getByRole('link', { name: 'Restore', exact: true }).click();
      await button(page, 'None').click();
      for (const name of ['Settings', 'Inventory'])
        await page.getByRole('checkbox', { name }).check();
      expect(await accessibilityProblems(page)).toEqual([]);
      await button(page, 'Compare with the present records').click();
      await page.getByText('1 created, 1 changed, 1 deleted').first().waitFor();
      const differences = page.getByRole('region', { name: 'Sites' });
      await differences.getByText(/Create.*fra1/).waitFor();
      await differences.getByRole('link', { name: 'newer1' }).first().waitFor();
      await differences
        .getByRole('table', { name: 'Change ams1' })
        .getByText('renumbered')
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      expect(await contentWidth(page, 390)).toBeLessThanOrEqual(390);
      await page.setViewportSize({ width: 1_280, height: 720 });

      // Others go on working.
      await root().put(siteOf('ams1'), { description: 'again' }).expect(200);
      await page.getByText('Records have changed since this preview').waitFor();
      await button(page, 'Restore').click();
      const dialog = page.getByRole('dialog');
      const restore = dialog.getByRole('button', { name: 'Restore', exact: true });
      expect(await restore.isDisabled()).toBe(true);
      expect(await accessibilityProblems(page)).toEqual([]);
      await confirm(page, 'Nightly', 'Restore');
      await page.getByText('restore_stale').first().waitFor();
      expect(await root().get<Site>(siteOf('ams1')).expect(200)).toMatchObject({
        description: 'again',
      });

      if (await dialog.isVisible()) await dialog.getByRole('button', { name: 'Back' }).click();
      else await page.getByRole('link', { name: 'Compare again' }).click();
      const compare = page.getByRole('button', { name: /^Compare/ });
      await compare.click();
      await page.getByText('again', { exact: true }).waitFor();
      await button(page, 'Restore').click();
      await confirm(page, 'Nightly', 'Restore');
      await page.getByText(/The records are restored: 1 created, 1 changed, 1 deleted/).waitFor();
      expect(await root().get<Site>(siteOf('ams1')).expect(200)).toMatchObject({ description: '' });
      await root().get(siteOf('fra1')).expect(200);
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('link', { name: 'pre-restore' }).first().click();
      await page.getByRole('heading', { name: 'pre-restore' }).waitFor();
      await page.getByRole('link', { name: 'a restore' }).click();
      await page.getByRole('heading', { name: 'Restore of Nightly' }).waitFor();
    });

    test('instead of restoring, others can be asked to approve exactly the preview', async () => {
      const backup = await makeBackup({
        label: 'Asked',
        mode: 'partial',
        sections: ['settings', 'inventory'],
      });
      await root().put(siteOf('ams1'), { description: 'to be undone' }).expect(200);
      const page = await console.open(someone, `/backups/${backup.id}/restore?sections=inventory`);
      await button(page, 'Compare with the present records').click();
      await button(page, 'Ask for approval instead').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('checkbox', { name: /Approver/ }).check();
      await dialog.getByRole('button', { name: 'Ask for approval' }).click();
      await page.waitForURL('**/approvals/apr_*');
      const id = assertDefined(/apr_\w+/.exec(page.url()), 'id of the request')[0];
      expect(await root().get(`/api/workflows/${id}`).expect(200)).toMatchObject({
        jobType: 'backup.restore',
        jobPayload: { backupId: backup.id, sections: ['inventory'], planHash: expect.any(String) },
      });
    });

    test('rights decide what is offered, and say what is missing', async () => {
      const backup = await makeBackup({ label: 'Rights', mode: 'partial', sections: ['access'] });
      await root().post('/api/rbac/roles', {
        id: 'restorer',
        name: 'Restorer',
        permissions: ['backup:read', 'backup:restore', 'event:read'],
      });
      const page = await console.open(
        await createUser(console.app, 'restorer'),
        `/backups/${backup.id}/restore`,
      );
      await page.getByText(/also needs rbac:write, user:write, auth:write/).waitFor();
      await button(page, 'Compare with the present records').click();
      await page.getByText('You may not read the records that differ.').waitFor();
      expect(await page.getByRole('button', { name: 'Ask for approval instead' }).count()).toBe(0);
      expect(await button(page, 'Restore').getAttribute('aria-disabled')).toBe('true');
      await page.goto(`/backups/${backup.id}`);
      await page.getByRole('row', { name: /Preview Succeeded/ }).waitFor();
      expect(await button(page, 'Delete').count()).toBe(0);
      expect(await button(page, 'Test restore').count()).toBe(0);
      const viewer = await console.open(await createUser(console.app, 'viewer'), '/backups');
      await viewer.getByText('Backups: not for your roles').waitFor();
    });

    test('a backup is deleted after its label was typed, and Home and the list follow', async () => {
      const backup = await makeBackup({ label: 'Typed' });
      const page = await console.open(someone, '/');
      await page.getByRole('link', { name: 'Typed' }).click();
      await button(page, 'Delete').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox').fill('type');
      await page.keyboard.press('Enter');
      expect(await dialog.getByRole('button', { name: 'Delete backup' }).isDisabled()).toBe(true);
      await confirm(page, 'Typed', 'Delete backup');
      await page.waitForURL('**/backups');
      await page.getByRole('row', { name: /Nightly/ }).waitFor();
      expect(await page.getByRole('row', { name: /Typed/ }).count()).toBe(0);
      await root().get(`/api/backup/${backup.id}`).expect(404);
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('link', { name: 'New schedule', exact: true }).click();
      await page.locator('input[value^="backup.create: "]').waitFor();
    });
  },
  { HOLDFAST_BACKUP_DIR: FOLDER },
);

describePages('backups that are not set up', (console) => {
  test('say which variable is missing', async () => {
    const page = await console.open(await createUser(console.app, 'platform-admin'), '/backups');
    await page.getByText('Backups are not set up').waitFor();
    await page.getByText(/HOLDFAST_BACKUP_DIR/).waitFor();
    await page.goto('/backups/new');
    await page.getByText('No backup can be made').waitFor();
    expect(await button(page, 'Make backup').getAttribute('aria-disabled')).toBe('true');
  });
});
