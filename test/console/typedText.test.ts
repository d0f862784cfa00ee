import { beforeAll, expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

/** Types into the field that has the focus, each letter before the page has drawn the one before. */
const TYPE_FAST = `(() => {
  const field = document.activeElement;
  const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
  for (const letter of 'replay') {
    set.call(field, field.value + letter);
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
})()`;

/** Pastes text into the field that has the focus. */
const pasting = (text: string) => `(() => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text', ${JSON.stringify(text)});
  const paste = { clipboardData, bubbles: true, cancelable: true };
  document.activeElement.dispatchEvent(new ClipboardEvent('paste', paste));
})()`;

describePages('what is typed', (console) => {
  let administrator: TestUser;

  beforeAll(async () => {
    administrator = await createUser(console.app, 'platform-admin');
  });

  const create = async (path: string, record: object): Promise<string> =>
    (await admin(console.app).post<WithId>(path, record).expect(201)).id;

  test('and is no value keeps a record from being saved, in whichever of its forms it is', async () => {
    const site = await create('/api/inventory/sites', { name: 'typed1' });
    const field = { resource: 'racks', name: 'power', type: 'integer' };
    await create('/api/inventory/custom-fields', field);
    const rack = await create('/api/inventory/racks', {
      ...{ name: 'typed1-r1', siteId: site, uHeight: 42 },
      customFields: { power: 10 },
    });
    const page = await console.open(administrator, `/inventory/racks/${rack}/edit`);
    const power = page.getByRole('group', { name: 'Custom fields' }).getByLabel('power');
    const height = page.getByLabel('U height');
    await page.getByLabel('Description').fill('Changed');
    await height.fill('48x');
    await power.fill('20x');
    await power.fill('20');
    const save = page.getByRole('button', { name: 'Save changes' });
    await save.hover();
    await page.getByRole('tooltip', { name: 'A field is incomplete.' }).waitFor();
    await height.fill('44');
    await save.click();
    await page.waitForURL(`**/inventory/racks/${rack}`);
  });

  test('and is no value stays with its entry when another one is removed', async () => {
    const page = await console.open(administrator, '/jobs/new?type=http.request');
    const list = page.getByRole('group', { name: 'Expect status' });
    const start = page.getByRole('button', { name: 'Start job' });
    await page.getByLabel('Url').fill('https://target.invalid/');
    for (const status of ['200', '20x']) {
      await list.getByRole('button', { name: 'Add an entry' }).click();
      await list.getByRole('textbox').last().fill(status);
    }
    await start.and(page.locator('[aria-disabled=true]')).waitFor();
    await list.getByRole('button', { name: 'Remove expect status 1' }).click();
    expect(await list.getByRole('textbox').inputValue()).toBe('20x');
    await page.locator('body').click();
    expect(await start.getAttribute('aria-disabled')).toBe('true');
    await list.getByRole('textbox').fill('204');
    await start.and(page.locator(':not([aria-disabled=true])')).waitFor();
  });

  test('keeps its line breaks, also those of a text that is pasted into a field of one line', async () => {
    const field = { resource: 'sites', name: 'runbook', type: 'text' };
    await create('/api/inventory/custom-fields', field);
    const site = await create('/api/inventory/sites', {
      name: 'typed2',
      customFields: { runbook: 'first\nsecond' },
    });
    const page = await console.open(administrator, `/inventory/sites/${site}/edit`);
    const runbook = page.getByRole('group', { name: 'Custom fields' }).getByLabel('runbook');
    expect(await runbook.inputValue()).toBe('first\nsecond');
    await runbook.press('End');
    await runbook.pressSequentially(' and more');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.waitForURL(`**/inventory/sites/${site}`);
    expect(await admin(console.app).get(`/api/inventory/sites/${site}`).expect(200)).toMatchObject({
      customFields: { runbook: expect.stringMatching(/^first( and more)?\nsecond( and more)?$/) },
    });

    await page.goto(`/inventory/sites/${site}/edit`);
    const address = page.getByLabel('Address', { exact: true });
    await address.focus();
    await page.evaluate(pasting('Street 1\nTown'));
    expect(await address.inputValue()).toBe('Street 1\nTown');
    await page.locator('body').click();
    await page.getByText('must be one line of text').first().waitFor();
  });

  test('into a search is kept letter by letter, and the address gets it', async () => {
    const page = await console.open(administrator, '/event-types');
    const field = page.getByLabel('Search event types');
    await field.focus();
    await page.evaluate(TYPE_FAST);
    expect(await field.inputValue()).toBe('replay');
    await page.waitForURL('**/event-types?q=replay');
    await page.getByRole('link', { name: 'Events', exact: true }).first().click();
    await page.goBack();
    expect(await field.inputValue()).toBe('replay');
  });

  test('for a job type of a schedule is there when the type is chosen again', async () => {
    const page = await console.open(administrator, '/schedules/new?jobType=core.echo');
    const payload = page.getByRole('group', { name: 'Payload' }).locator('textarea').first();
    await payload.fill('{"message": "kept"}');
    for (const type of ['core.sleep', 'core.echo']) {
      await page.getByRole('combobox', { name: 'Job type' }).click();
      await page.getByRole('option', { name: `${type}:` }).click();
    }
    expect(JSON.parse(await payload.inputValue())).toEqual({ message: 'kept' });
    // What is no object stays as it is typed.
    await payload.fill('');
    await payload.pressSequentially('[12]');
    expect(await payload.inputValue()).toBe('[12]');
    await payload.blur();
    await page.getByText('must be a JSON object').first().waitFor();
  });
});
