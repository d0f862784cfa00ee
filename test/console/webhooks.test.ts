import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { DeliveryRecord, WebhookRecord } from '../../api/webhooks/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { RECEIVERS } from '../../ui/parts/webhooks/receiverCode.ts';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { respondWith, startSink, type ReceivedRequest, type Sink } from '../support/sink.ts';
import { createUser, type Page as ListOf, type TestUser } from '../support/users.ts';
import { fastRetries, verifyMessage } from '../support/webhooks.ts';

const HOSTILE = '<img src=x onerror="alert(1)">\u202e refused';

const idOf = (url: string, prefix: string): string =>
  assertDefined(new RegExp(`${prefix}_\\w+`).exec(url)?.[0], `an id in ${url}`);

const idOfMessage = ({ headers }: ReceivedRequest) => headers['webhook-id'];

describeConsole('webhooks', (console) => {
  let operator: TestUser;
  let sink: Sink;
  let webhook: { id: string; secret: string };
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-console-webhooks-'));
  const receivers: ChildProcess[] = [];

  beforeAll(async () => {
    sink = await startSink();
    operator = await createUser(console.app, 'platform-admin');
  });
  afterAll(async () => {
    for (const receiver of receivers) receiver.kill();
    await sink.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const root = () =>
    console.app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  const createJob = () =>
    root().post('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' }).expect(201);
  const deliveriesOf = async (id: string) =>
    (await root().get<ListOf<DeliveryRecord>>(`/api/deliveries?webhookId=${id}`).expect(200)).items;
  const dialog = (page: Page) => page.getByRole('dialog');

  test('one is created with types of the catalogue, and its secret is shown once', async () => {
    const page = await console.open(operator, '/webhooks');
    await page.getByText('No webhooks yet').waitFor();
    await page.keyboard.press('c');
    await page.waitForURL('**/webhooks/new');
    await page.getByLabel('Endpoint').fill('http://10.0.0.1/hook');
    await page.getByRole('textbox', { name: 'Search event types' }).fill('job has succeeded');
    await page.getByRole('checkbox', { name: /job\.succeeded/ }).check();
    await page.getByRole('textbox', { name: 'Search event types' }).fill('');
    await page.getByRole('checkbox', { name: 'All of Secret' }).check();
    await page.getByText(/^4 types of \d+ chosen$/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Create webhook' }).click();
    // The service says at the field what it refuses; what was typed stays.
    await page
      .getByText(/is not a public address/i)
      .first()
      .waitFor();
    await page.getByLabel('Endpoint').fill(sink.url('/hook'));
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const secret = (await dialog(page).locator('[data-secret]').textContent()) ?? '';
    expect(secret).toMatch(/^whsec_/);
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog(page).getByRole('button', { name: 'I have stored it' }).click();
    await page.waitForURL('**/webhooks/whk_*');
    webhook = { id: idOf(page.url(), 'whk'), secret };
    await page.getByText('No delivery yet').waitFor();
    await page.getByText('No deliveries yet').waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await root().get(`/api/webhooks/${webhook.id}`).expect(200)).toMatchObject({
      eventTypes: ['job.succeeded', 'secret.created', 'secret.deleted', 'secret.updated'],
      retryPolicy: { maxAttempts: 10, maxIntervalSeconds: 86_400 },
    });
  });

  test('a test shows the answer as text, deliveries say what the endpoint answered', async () => {
    const page = await console.open(operator, `/webhooks/${webhook.id}`);
    sink.respond('/hook', respondWith(500, { 'content-type': 'text/html' }, HOSTILE));
    await page.getByRole('button', { name: 'Test' }).click();
    await dialog(page).getByRole('button', { name: 'Send the test message' }).click();
    await dialog(page).getByText('The endpoint does not accept it').waitFor();
    const answer = dialog(page).getByLabel('Answer of the endpoint');
    expect(await answer.textContent()).toContain('<img src=x onerror="alert(1)">');
    expect(await answer.locator('img').count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    sink.respond('/hook', respondWith(204));
    await dialog(page).getByRole('button', { name: 'Send again' }).click();
    await dialog(page).getByText('The endpoint accepts it').waitFor();
    await dialog(page).getByRole('button', { name: 'Close' }).last().click();

    await createJob();
    await page.getByRole('link', { name: 'job.succeeded' }).first().waitFor();
    await page.getByText('Working').waitFor();
    await page.getByRole('grid').getByRole('row').nth(1).getByRole('link').first().click();
    await page.getByRole('heading', { name: /Attempt 1/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Redeliver' }).click();
    await page.getByRole('heading', { name: /Attempt 2/ }).waitFor();
    const [first, second] = sink.requestsTo('/hook').slice(-2);
    expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id']);

    // The event, and from there back to the webhook.
    await page.getByRole('link', { name: 'job.succeeded' }).click();
    await page.waitForURL('**/events/evt_*');
    await page.getByRole('region', { name: 'Deliveries' }).getByRole('link').first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`/id/${webhook.id}`);
    await page.waitForURL(`**/webhooks/${webhook.id}`);
  });

  test('one that fails says since when, and Home and the list lead to it', async () => {
    sink.respond('/broken', respondWith(503));
    const failing = await root()
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: sink.url('/broken'),
        description: 'Alerts of the operations team',
        eventTypes: ['job.created'],
        ...fastRetries,
      })
      .expect(201);
    await createJob();
    await eventually(
      () => deliveriesOf(failing.id),
      ([delivery]) => delivery?.status === 'failed',
    );
    const page = await console.open(operator, '/');
    await page.getByRole('link', { name: 'Alerts of the operations team' }).click();
    await page.getByText(/^Every attempt has failed since/).waitFor();
    await page.getByText('Failing', { exact: true }).first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto('/webhooks?failingSince=on');
    await page.getByRole('row', { name: /Alerts of the operations team/ }).waitFor();
    expect(await page.getByRole('grid').getByRole('row').count()).toBe(2);
    await page.goto(`/deliveries?status=failed`);
    await page.getByRole('link', { name: 'Alerts of the operations team' }).first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('a replay says how many events it sends, and sends them', async () => {
    const page = await console.open(operator, `/webhooks/${webhook.id}`);
    const before = sink.requestsTo('/hook').length;
    const sent = (await deliveriesOf(webhook.id)).length;
    await page.getByRole('button', { name: 'Replay' }).click();
    const amount = sent === 1 ? '1 event' : `${sent} events`;
    await dialog(page).getByText(amount, { exact: true }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog(page).getByRole('button', { name: 'Replay' }).click();
    await page.getByText(/queues the deliveries/).waitFor();
    // The end of the replay's own job is an event, too, which may come in between.
    const known = new Set(sink.requestsTo('/hook').slice(0, before).map(idOfMessage));
    const again = await eventually(
      () => sink.requestsTo('/hook').slice(before).map(idOfMessage),
      (ids) => ids.filter((id) => known.has(id)).length >= sent,
    );
    expect(new Set(again.filter((id) => known.has(id))).size).toBe(sent);
  });

  test('a rotation shows the new secret once, and the old one signs, too', async () => {
    const page = await console.open(operator, `/webhooks/${webhook.id}`);
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog(page).getByRole('button', { name: 'Rotate secret' }).click();
    const secret = (await dialog(page).locator('[data-secret]').textContent()) ?? '';
    await dialog(page)
      .getByText(/^The former secret signs, too/)
      .waitFor();
    await dialog(page).getByRole('button', { name: 'I have stored it' }).click();
    await page.getByText(/The former one signs, too, until/).waitFor();
    const before = sink.requestsTo('/hook').length;
    await createJob();
    const request = await eventually(
      () => sink.requestsTo('/hook')[before],
      (each) => each !== undefined,
    );
    for (const each of [secret, webhook.secret]) verifyMessage(each, request);
    webhook.secret = secret;
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await dialog(page)
      .getByText(/It stops immediately/)
      .waitFor();
    await page.keyboard.press('Escape');
  });

  test('it is edited on what others have changed, disabled, enabled and deleted', async () => {
    const page = await console.open(operator, `/webhooks/${webhook.id}`);
    await page.getByRole('button', { name: 'Edit' }).waitFor();
    await page.keyboard.press('e');
    await page.getByLabel('Description').fill('Mine');
    await root().put(`/api/webhooks/${webhook.id}`, { description: 'Theirs' }).expect(200);
    await page.getByRole('button', { name: 'Save changes' }).click();
    await dialog(page).getByText('Theirs').first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Back', exact: true }).click();
    await page.getByRole('button', { name: 'Leave' }).click();

    await page.getByRole('heading', { name: 'Theirs', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Disable' }).click();
    await dialog(page).getByRole('button', { name: 'Disable webhook' }).click();
    await page.getByText(/^Disabled by a user at/).waitFor();
    const replay = page.getByRole('button', { name: 'Replay' });
    expect(await replay.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('button', { name: 'Enable' }).click();
    await dialog(page).getByRole('button', { name: 'Enable webhook' }).click();
    await page.getByText(/^Disabled by a user at/).waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'Enabled', exact: true }).waitFor();
    await page.getByRole('cell', { name: 'Secret rotated' }).waitFor();

    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog(page).getByRole('button', { name: 'Delete webhook' }).click();
    await page.waitForURL('**/webhooks');
    await page.getByRole('row', { name: /Alerts/ }).waitFor();
    expect(await page.getByRole('link', { name: 'Theirs' }).count()).toBe(0);
  });

  /** A port that is free now. */
  async function freePort(): Promise<number> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  test.each(RECEIVERS.map((receiver) => [receiver.language, receiver] as const))(
    'the receiver in %s accepts a really signed message, and none with another secret',
    async (_language, { file, code, run }) => {
      await writeFile(path.join(folder, file), code);
      const port = await freePort();
      const made = await root()
        .post<WebhookRecord>('/api/webhooks', {
          endpointUrl: `http://127.0.0.1:${port}/`,
          eventTypes: ['job.cancelled'],
        })
        .expect(201);
      const [command = '', ...args] = run.split(' ');
      const receiver = spawn(command === 'node' ? process.execPath : command, args, {
        cwd: folder,
        env: { PATH: process.env.PATH, WEBHOOK_SECRET: made.secret, PORT: String(port) },
      });
      receivers.push(receiver);
      let output = '';
      receiver.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      const send = async () =>
        (
          await root()
            .post<{ httpStatus: number | null }>(`/api/webhooks/${made.id}/test`)
            .expect(200)
        ).httpStatus;
      expect(await eventually(send, (status) => status !== null)).toBe(204);
      await eventually(
        () => output,
        (text) => /^evt_\w+ webhook\.test\r?\n/.test(text),
      );
      // Both signatures are sent during a rotation, then none with the secret of the receiver.
      const rotate = () => root().post(`/api/webhooks/${made.id}/rotate-secret`, {}).expect(200);
      await rotate();
      expect(await send()).toBe(204);
      await rotate();
      expect(await send()).toBe(400);
    },
  );

  test('who may only read sees them, and cannot change them; others see no page', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/webhooks');
    await page.getByRole('link', { name: /Alerts/ }).click();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    expect(await page.getByRole('button', { name: /Test|Rotate|Delete|Disable/ }).count()).toBe(0);
    const other = await console.open(await createUser(console.app), '/webhooks');
    await other.getByText('You have no role yet').waitFor();
  });
});
