import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { ScheduleRecord } from '../../api/schedules/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems, OWN } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { listRuns } from '../support/schedules.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

const createSchedule = ({ client }: TestUser, fields: object): Promise<ScheduleRecord> =>
  client
    .post<ScheduleRecord>('/api/schedules', {
      cronExpression: '0 * * * *',
      jobType: 'core.echo',
      payload: { hello: 1 },
      ...fields,
    })
    .expect(201);

const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true });

/** A page of runs, after which there are more. */
const pageOfRuns = (scheduleId: string, page: number) => ({
  items: Array.from({ length: 100 }, (_, index) => ({
    id: `run_${page}_${index}`,
    scheduleId,
    dueAt: '2026-11-21T12:00:00.000Z',
    outcome: 'skipped',
    reason: 'paused',
    kind: 'scheduled',
    caughtUp: false,
    actorId: 'system',
    jobId: null,
    job: null,
    jobStatus: null,
    jobErrorCode: null,
    startedAt: null,
    finishedAt: null,
  })),
  nextCursor: `after-${page}`,
});

describeConsole('schedules', (console) => {
  test('show the next ten times while one types, and what clock changes do to them', async () => {
    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, '/schedules');
    await page.getByText('No schedules yet').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'New schedule' }).first().click();
    const expression = page.getByLabel('Expression');
    await expression.fill('60 1 * * *');
    await page.getByText('the minute has 60 in "60"').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await expression.fill('30 1 * * *');
    await page.getByRole('combobox', { name: 'Time zone' }).fill('Europe/London');
    await page.getByRole('option', { name: 'Europe/London' }).click();
    // Clocks are set forward on 29 March 2099.
    await page.getByLabel('Not before').fill('2099-03-28T12:00');
    const times = page.getByRole('list', { name: 'Next times' }).filter({ visible: true });
    await times.getByText('Skipped: clocks are set forward').waitFor();
    expect(await times.getByRole('listitem').count()).toBe(11);
    expect(await times.getByRole('listitem').first().textContent()).toContain(
      'Sun 29 Mar 2099 01:30',
    );
    await page.getByLabel('Runs', { exact: true }).fill('2');
    await page.getByText('Then it ends.').filter({ visible: true }).waitFor();
    expect(await times.getByRole('listitem').count()).toBe(3);

    await page.getByLabel('Name').fill('Nightly');
    await page.getByRole('combobox', { name: 'Job type' }).fill('echo');
    await page.getByRole('option', { name: /core\.echo/ }).click();
    await page.getByRole('button', { name: 'Create schedule' }).dblclick();
    await page.waitForURL('**/schedules/sch_*');
    await page.getByRole('heading', { name: 'Nightly' }).waitFor();
    const { items } = await operator.client
      .get<{ items: ScheduleRecord[] }>('/api/schedules')
      .expect(200);
    expect(items).toMatchObject([
      { name: 'Nightly', cronExpression: '30 1 * * *', timezone: 'Europe/London' },
    ]);
  });

  test('are run now, paused with a reason, backfilled after a preview, and deleted', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await createSchedule(operator, { name: 'Hourly' });
    const page = await console.open(operator, `/schedules/${id}`);
    await page.getByRole('heading', { name: 'Hourly' }).waitFor();
    await page.keyboard.press('e');
    await page.getByRole('link', { name: 'Back', exact: true }).click();
    await page.getByRole('button', { name: 'Run now' }).click();
    await inDialog(page, 'Run now').click();
    await page.getByRole('status').getByRole('link', { name: 'core.echo' }).waitFor();
    await page.getByRole('grid', { name: 'Runs' }).getByText('Succeeded').waitFor();
    await page.getByRole('button', { name: /1 succeeded$/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);

    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByLabel('Reason').fill('Freeze until Monday');
    await inDialog(page, 'Pause schedule').click();
    await page.getByText(/Paused .* by .*: Freeze until Monday/).waitFor();
    await page.getByRole('button', { name: 'Resume', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Backfill' }).click();
    const run = page.getByRole('dialog').getByRole('button', { name: /^Run 2[345] occurrences$/ });
    await run.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await run.click();
    await page.waitForURL('**/jobs/job_*');
    await page.getByRole('heading', { name: 'schedule.backfill' }).waitFor();
    await page.getByRole('region', { name: 'Records' }).getByRole('link').click();
    await page.getByRole('link', { name: 'Jobs of the schedule' }).click();
    await page.getByText('Schedule: Hourly').waitFor();
    await page.goBack();
    await page
      .getByRole('button', { name: /2[345] succeeded|1?\d succeeded/ })
      .first()
      .waitFor();

    const [newest] = await listRuns(operator.client, id);
    await page.goto(`/id/${assertDefined(newest, 'run').id}`);
    await page.waitForURL(`**/schedules/${id}*`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await inDialog(page, 'Delete schedule').click();
    await page.waitForURL('**/schedules');
    await operator.client.get(`/api/schedules/${id}`).expect(404);
  });

  test('say that a long list of runs may have changed, and show its present state', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await createSchedule(operator, { name: 'Busy' });
    const context = await console.profileOf(operator);
    let pages = 0;
    await context.route(/schedules\/logs\?(?=.*limit=100)/, (route) => {
      pages += 1;
      return route.fulfill({ ...OWN, json: pageOfRuns(id, pages) });
    });
    const page = await context.newPage();
    await page.goto(`/schedules/${id}`);
    const grid = page.getByRole('grid', { name: 'Runs' });
    // What is longer than four pages is not read again by itself.
    const readMany = async () => {
      await grid.locator('[aria-rowindex="2"] [role=gridcell]').first().focus();
      for (const rows of [100, 200, 300, 400]) {
        await page.keyboard.press('Control+End');
        await grid.locator(`[aria-rowindex="${rows + 2}"]`).waitFor();
      }
    };
    await readMany();
    expect(await page.getByText('The list may have changed.').count()).toBe(0);
    await operator.client.post(`/api/schedules/${id}/pause`, {}).expect(200);
    await page.getByText('The list may have changed.').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const before = pages;
    await page.getByRole('button', { name: 'Show the present state' }).click();
    await page.getByText('The list may have changed.').waitFor({ state: 'detached' });
    await eventually(
      () => pages,
      (read) => read > before,
    );
    // A long list that is shown again after some time.
    await readMany();
    await page.evaluate('{ const now = Date.now; Date.now = () => now() + 60_000; }');
    await page.getByRole('link', { name: 'Schedules' }).first().click();
    await page.getByRole('heading', { name: 'Schedules' }).waitFor();
    await page.goBack();
    await page.getByText('The list may have changed.').waitFor();
  });

  test('that others have changed show each field three times, and nothing typed is lost', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await createSchedule(operator, { name: 'Shared' });
    const page = await console.open(operator, `/schedules/${id}/edit`);
    await page.getByLabel('Name').fill('Renamed by me');
    await page.getByLabel('Expression').fill('0 3 * * *');
    await operator.client
      .put(`/api/schedules/${id}`, { name: 'Renamed by others', jitterSeconds: 30 })
      .expect(200);
    await page.getByRole('button', { name: 'Save changes' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Renamed by others').waitFor();
    await dialog.getByText('Renamed by me').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save the marked values' }).click();
    await page.waitForURL(`**/schedules/${id}`);
    expect(await operator.client.get(`/api/schedules/${id}`).expect(200)).toMatchObject({
      name: 'Renamed by me',
      cronExpression: '0 3 * * *',
      jitterSeconds: 30,
    });
  });

  test('keep what is typed while they are saved, and save it with the next version', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await createSchedule(operator, { name: 'Before' });
    const page = await console.open(operator, `/schedules/${id}/edit`);
    const name = page.getByLabel('Name');
    const save = page.getByRole('button', { name: 'Save changes' });
    let answer = (): void => undefined;
    await page.route(`**/api/schedules/${id}`, async (route) => {
      if (route.request().method() === 'PUT')
        await new Promise<void>((resolve) => (answer = resolve));
      await route.continue();
    });
    await name.fill('While');
    await Promise.all([page.waitForRequest((each) => each.method() === 'PUT'), save.click()]);
    await name.fill('After');
    answer();
    await page.getByText('Your latest changes are not saved yet.').waitFor();
    expect(await name.inputValue()).toBe('After');
    await page.unroute(`**/api/schedules/${id}`);
    await save.click();
    await page.waitForURL(`**/schedules/${id}`);
    expect(await operator.client.get(`/api/schedules/${id}`).expect(200)).toMatchObject({
      name: 'After',
    });
  });

  test('ask before what was typed is left, and offer a viewer nothing to change', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await createSchedule(operator, { name: 'Read' });
    const page = await console.open(operator, `/schedules/${id}/edit`);
    await page.getByLabel('Name').fill('Read it');
    await page.getByRole('link', { name: 'Back', exact: true }).click();
    await inDialog(page, 'Stay').click();
    expect(await page.getByLabel('Name').inputValue()).toBe('Read it');
    await page.getByRole('link', { name: 'Back', exact: true }).click();
    await inDialog(page, 'Leave').click();
    await page.waitForURL(`**/schedules/${id}`);

    const viewer = await console.open(await createUser(console.app, 'viewer'), `/schedules/${id}`);
    await viewer.getByRole('heading', { name: 'Read' }).waitFor();
    expect(
      await viewer.getByRole('button', { name: /Run now|Pause|Backfill|Edit|Delete/ }).count(),
    ).toBe(0);
  });

  test('that cancel jobs say what those lack who may not cancel any', async () => {
    const owner = await createUser(console.app, 'operator');
    const fields = { name: 'Replaces', overlapPolicy: 'cancelOther', enabled: false };
    const { id } = await createSchedule(owner, fields);
    const permissions = ['schedule:read', 'schedule:write', 'job:read', 'job:write'];
    const role = await admin(console.app)
      .post<{ id: string }>('/api/rbac/roles', { name: 'planner', permissions })
      .expect(201);
    const page = await console.open(
      await createUser(console.app, role.id, 'viewer'),
      `/schedules/${id}`,
    );
    for (const name of ['Run now', 'Resume', 'Take over'])
      await page.locator('button[aria-disabled=true]', { hasText: name }).waitFor();
    await page.getByRole('button', { name: 'Backfill', disabled: false }).waitFor();
    await page.getByRole('link', { name: 'Edit', exact: true }).click();
    const policy = page.getByRole('radio', { name: /^Cancel/ });
    expect(await policy.isDisabled()).toBe(true);
  });
});
