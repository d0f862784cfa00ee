import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import type { ApprovalRecord } from '../../api/approvals/schemas.ts';
import {
  changeRequest,
  createRequest,
  readRequest,
  sleepJob,
  untilStatus,
} from '../support/approvals.ts';
import { describeConsole, type TestConsole } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, PASSWORD, type TestUser } from '../support/users.ts';

const comment = (page: Page) => page.getByRole('textbox', { name: 'Comment' });
const heading = (page: Page, name: string) => page.getByRole('heading', { name });

type Prefix = { id: string; version: number };

let networks = 0;

/** A prefix of its own, and a request of `asker` for a larger one around it. */
async function askForPrefix(
  console: TestConsole,
  asker: TestUser,
  more: object = {},
): Promise<{ prefix: Prefix; cidr: string; request: ApprovalRecord }> {
  const network = `10.${networks++}`;
  const prefix = await admin(console.app)
    .post<Prefix>('/api/inventory/prefixes', { cidr: `${network}.0.0/24`, description: 'old' })
    .expect(201);
  const cidr = `${network}.0.0/16`;
  const request = await createRequest(asker.client, {
    title: `Larger prefix ${network}`,
    ...changeRequest(
      ['create', 'prefixes', { cidr, description: 'new hall' }],
      ['update', 'prefixes', { id: prefix.id, description: '<b>rack 5</b>' }],
    ),
    ...more,
  });
  return { prefix, cidr, request };
}

describeConsole('approvals', (console) => {
  test('show exactly what changes; an approval is for that, and its job is followed to the end', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { request, cidr, prefix } = await askForPrefix(console, asker);
    const page = await console.open(decider, '/approvals');
    await page.getByRole('link', { name: request.title }).click();
    await heading(page, request.title).waitFor();
    expect(await page.title()).toBe(`${request.title} · Holdfast`);
    await page.getByText('Needs 1 approval.').waitFor();
    await page.getByText('creates 1, changes 1').waitFor();
    const created = page.getByRole('table', { name: `Create ${cidr}` });
    await created.getByText('new hall').waitFor();
    const changed = page.getByRole('table', { name: 'Change' }).nth(0);
    // Markup in a value is text.
    await changed.getByText('<b>rack 5</b>').waitFor();
    await changed.getByText(`${cidr} (new)`).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await comment(page).fill('as discussed');
    await page.getByRole('button', { name: 'Approve 2 changes' }).click();
    await page.getByText('Executed', { exact: true }).waitFor();
    await page.getByText('Succeeded').waitFor();
    const now = await admin(console.app)
      .get<{ description: string }>(`/api/inventory/prefixes/${prefix.id}`)
      .expect(200);
    expect(now.description).toBe('<b>rack 5</b>');
  });

  test('show a payload whole, with marks for what cannot be seen, and who asks beyond the name', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    await admin(console.app)
      .put(`/api/users/${asker.id}`, { displayName: 'Olga Approver' })
      .expect(200);
    const padding = Object.fromEntries(
      Array.from({ length: 150 }, (_, at) => [`X-${at}`, 'noise '.repeat(100)]),
    );
    const { id } = await createRequest(asker.client, {
      title: 'Run \u202Egnp.exe',
      payload: { padding: { ...padding, last: { body: `${'fine '.repeat(200)}delete-all` } } },
    });
    const page = await console.open(decider, `/approvals/${id}`);
    await page.getByRole('heading', { name: /^Run U\+202E ?gnp\.exe$/ }).waitFor();
    expect(await page.title()).toBe('Run [U+202E]gnp.exe · Holdfast');
    const details = page.getByRole('group', { name: 'Details from the requester' });
    const text = await details.innerText();
    expect(text.match(/noise /g)?.length).toBe(15_000);
    expect(text).toContain('fine delete-all"');
    // Nothing can be folded; the one button copies.
    expect(await details.getByRole('button').count()).toBe(1);
    await page.getByText(`Olga Approver (${asker.username})`).first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('are approved as the page shows them, or not at all', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { id, title } = await createRequest(asker.client, { title: 'Another content' });
    const context = await console.profileOf(decider);
    await context.route(`**/api/workflows/${id}?*`, async (route) => {
      const response = await route.fetch();
      const request = (await response.json()) as ApprovalRecord;
      await route.fulfill({ response, json: { ...request, contentHash: 'f'.repeat(64) } });
    });
    const page = await context.newPage();
    await page.goto(`/approvals/${id}`);
    await heading(page, title).waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('alert').getByText('content_mismatch').waitFor();
    expect((await readRequest(decider.client, id)).status).toBe('pending');
  });

  test('of two people, the second sees what the first has decided, and keeps what was written', async () => {
    const [asker, first, second] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
      createUser(console.app, 'approver'),
    ]);
    const { id } = await createRequest(asker.client, { title: 'A race', ...sleepJob(10) });
    const context = await console.profileOf(second);
    // The page does not hear of the decision, as in a moment without network.
    await context.route('**/api/events?*', () => undefined);
    const page = await context.newPage();
    await page.goto(`/approvals/${id}`);
    await comment(page).fill('not today');
    await first.client.post(`/api/workflows/${id}/approve`, {}).expect(200);
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('alert').getByText('decided first: the request is approved.').waitFor();
    expect(await page.getByRole('button', { name: 'Reject' }).count()).toBe(0);
    expect(await comment(page).inputValue()).toBe('not today');
    // What is typed while a comment is sent stays.
    const sent = Promise.withResolvers<undefined>();
    await page.route('**/comments', (route) => sent.promise.then(() => route.continue()));
    await page.getByRole('button', { name: 'Comment' }).click();
    await comment(page).fill('nor tomorrow');
    sent.resolve(undefined);
    await page.getByRole('listitem').getByText('not today').waitFor();
    expect(await comment(page).inputValue()).toBe('nor tomorrow');
    await page.getByRole('button', { name: 'Comment' }).click();
    await page.getByRole('listitem').getByText('nor tomorrow').waitFor();
    expect(await comment(page).inputValue()).toBe('');
  });

  test('that have become stale show what has changed since, and by whom; rejecting needs a reason', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { request, prefix } = await askForPrefix(console, asker);
    const page = await console.open(decider, `/approvals/${request.id}`);
    await heading(page, request.title).waitFor();
    // The page is open while the record changes.
    await asker.client
      .put(`/api/inventory/prefixes/${prefix.id}`, { description: 'changed by hand' })
      .expect(200);
    const bar = page.getByRole('region', { name: 'The records have changed since the request' });
    await bar.getByText('changed by hand').waitFor();
    await bar.getByText(`${asker.username} changed it`).waitFor();
    await asker.client
      .put(`/api/inventory/prefixes/${prefix.id}`, { description: 'changed again' })
      .expect(200);
    await bar.getByText('changed again').first().waitFor();
    expect(await bar.getByText(`${asker.username} changed it`).count()).toBe(2);
    expect(await accessibilityProblems(page)).toEqual([]);
    const approve = page.getByRole('button', { name: 'Approve 2 changes' });
    expect(await approve.getAttribute('aria-disabled')).toBe('true');
    await approve.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText('Write a comment first.').waitFor();
    expect((await readRequest(decider.client, request.id)).status).toBe('pending');
    await page.keyboard.type('Make a new one.');
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText('rejected it: Make a new one.').waitFor();
    expect((await readRequest(asker.client, request.id)).status).toBe('rejected');
  });

  test('of your own are decided by others; you may comment and cancel', async () => {
    const asker = await createUser(console.app, 'operator', 'approver');
    const { request } = await askForPrefix(console, asker);
    const page = await console.open(asker, `/approvals/${request.id}`);
    await page.getByText('You made this request. Another person must decide on it.').waitFor();
    expect(await page.getByRole('button', { name: /^Approve/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Cancel the request' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel the request' });
    await dialog.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('textbox').fill('No longer needed');
    await dialog.getByRole('button', { name: 'Cancel the request' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    await page.getByText('No longer needed').waitFor();
    expect((await readRequest(asker.client, request.id)).status).toBe('cancelled');
  });

  test('are shown to a reader without buttons that decide', async () => {
    const [asker, reader] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'viewer'),
    ]);
    const { request } = await askForPrefix(console, asker);
    const page = await console.open(reader, `/approvals/${request.id}`);
    await page.getByText('You do not hold the permission workflow:approve here.').waitFor();
    expect(await page.getByRole('textbox').count()).toBe(0);
    await page.goto('/approvals/apr_01jd0cmxk5e5v8kyzwq0q8s3rt');
    await page.getByText('not_found').waitFor();
  });

  test('are listed to decide, own and all, with filters in the address', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const [question, job] = [
      await createRequest(asker.client, { title: 'A question to list', type: 'question' }),
      await createRequest(asker.client, { title: 'A job to list', ...sleepJob(10) }),
    ];
    const page = await console.open(decider, '/approvals?type=question');
    const row = (title: string) => page.getByRole('row').filter({ hasText: title });
    await row(question.title).waitFor();
    expect(await row(job.title).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await row(job.title).waitFor();
    // Decided elsewhere, a request leaves the list of those to decide.
    await decider.client.post(`/api/workflows/${job.id}/reject`, {}).expect(200);
    await row(job.title).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'All' }).click();
    await row(job.title).getByText('Rejected').waitFor();
    expect(new URL(page.url()).search).toBe('?view=all');
    await page.getByRole('button', { name: /^Rejected/ }).click();
    await row(question.title).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('status')).toBe('rejected');
    await page.getByRole('link', { name: 'Mine' }).click();
    await page.getByText('You have not asked for anything yet').waitFor();
  });

  test('keep a comment that is not sent while one follows a link, and ask before the tab is closed', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { id, title } = await createRequest(asker.client, { title: 'With a comment' });
    const other = await createRequest(asker.client, { title: 'Without a comment' });
    const page = await console.open(decider, '/approvals');
    await page.getByRole('link', { name: title }).click();
    await comment(page).fill('not yet sent');
    await page.getByRole('link', { name: 'Inventory' }).click();
    await heading(page, 'Inventory').waitFor();
    await page.goBack();
    expect(await comment(page).inputValue()).toBe('not yet sent');
    await page.goBack();
    await page.getByRole('link', { name: other.title }).click();
    expect(await comment(page).inputValue()).toBe('');
    await page.goBack();
    await page.getByRole('link', { name: title }).click();
    const [question] = await Promise.all([
      page.waitForEvent('dialog'),
      page.close({ runBeforeUnload: true }),
    ]);
    expect(question.type()).toBe('beforeunload');
    await question.dismiss();
    await page.getByRole('button', { name: 'Comment' }).click();
    await page.getByRole('listitem').getByText('not yet sent').waitFor();
    expect(await comment(page).inputValue()).toBe('');
    expect((await readRequest(decider.client, id)).status).toBe('pending');
  });

  test('can be decided from signing in on with the keyboard alone', async () => {
    const [asker, decider] = await Promise.all([
      createUser(console.app, 'operator'),
      createUser(console.app, 'approver'),
    ]);
    const { id, title } = await createRequest(asker.client, { title: 'Only keys' });
    const page = await (await console.profile()).newPage();
    await page.goto('/approvals');
    await page.getByLabel('User name').and(page.locator(':focus')).waitFor();
    await page.keyboard.type(decider.username);
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: title }).waitFor();
    const row = page.getByRole('row').filter({ has: page.locator(':focus') });
    await pressUntil(page, 'Tab', row);
    await pressUntil(page, 'ArrowDown', row.filter({ hasText: title }));
    await page.keyboard.press('Enter');
    await heading(page, title).waitFor();
    // No single key decides.
    for (const key of ['a', 'y', 'Enter', 'r', 'x']) await page.keyboard.press(key);
    expect((await readRequest(decider.client, id)).status).toBe('pending');
    const approve = page.getByRole('button', { name: 'Approve', exact: true });
    await pressUntil(page, 'Tab', approve.and(page.locator(':focus')));
    await page.keyboard.press('Enter');
    await page.getByText('Approved', { exact: true }).waitFor();
    await untilStatus(decider.client, id, 'approved');
  });
});

/** Presses a key until there is such an element. */
async function pressUntil(page: Page, key: string, wanted: Locator): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    if ((await wanted.count()) > 0) return;
    await page.keyboard.press(key);
  }
  throw new Error('The element cannot be reached with the keyboard');
}
