import { expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { createUser } from '../support/users.ts';

describePages('a question in a form', (console) => {
  test('does not send the form when it is answered', async () => {
    const user = await createUser(console.app, 'operator');
    const page = await console.open(user, '/jobs');
    await page.getByRole('link', { name: 'New job' }).first().click();
    await page.getByRole('button', { name: 'core.echo' }).click();
    await page.getByRole('main').locator('textarea').first().fill('{"message": "unsent"}');
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') sent.push(request.url());
    });
    await page.goBack();
    await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await page.waitForURL('**/jobs');
    await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    expect(sent).toEqual([]);
  });

  test('is asked about what was typed for another type, too', async () => {
    const user = await createUser(console.app, 'operator');
    const page = await console.open(user, '/jobs');
    await page.getByRole('link', { name: 'New job' }).first().click();
    await page.getByRole('button', { name: 'core.echo' }).click();
    await page.getByRole('main').locator('textarea').first().fill('{"message": "unsent"}');
    await page.getByRole('button', { name: 'core.sleep' }).click();
    await page.goBack();
    await page.getByRole('dialog', { name: 'Leave this page?' }).waitFor();
  });
});
