import { expect, test } from '@jest/globals';
import { describeConsole, signIn } from '../support/console/console.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

const CIDR = '10.64.0.0/10';

describeConsole('a network engineer', (console) => {
  /** A browser of a person, who signs in. */
  const openAs = async ({ username }: TestUser) => {
    const page = await (await console.profile()).newPage();
    await page.goto('/');
    await signIn(page, username);
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    return page;
  };

  test('finds free space, asks for it, has it approved by another, and reads who did what', async () => {
    const [asker, decider] = [
      await createUser(console.app, 'operator'),
      await createUser(console.app, 'approver'),
    ];
    for (const record of [
      { cidr: '10.0.0.0/8', status: 'container' },
      { cidr: '10.0.0.0/10', description: 'Amsterdam' },
    ])
      await admin(console.app).post('/api/inventory/prefixes', record).expect(201);

    const mine = await openAs(asker);
    await mine.keyboard.press('g');
    await mine.keyboard.press('i');
    await mine.getByRole('link', { name: 'Prefixes' }).click();
    await mine.getByRole('link', { name: 'Tree and map' }).click();
    const map = mine.getByRole('application', { name: 'Map of 10.0.0.0/8' });
    const box = await map.boundingBox();
    // The lower left quarter: half of the left half.
    await map.click({ position: { x: (box?.width ?? 0) / 4, y: (box?.height ?? 0) * 0.75 } });
    await mine.getByText('It is free: nothing else is here.').waitFor();
    // The address of the page has the choice before the next step leaves it.
    await mine.waitForURL(/[?&]at=/);
    await mine.getByRole('link', { name: `New prefix ${CIDR}` }).click();
    await mine.getByLabel('Description').fill('New hall');
    await mine.getByRole('button', { name: 'Ask for approval' }).click();
    const dialog = mine.getByRole('dialog', { name: 'Ask for approval' });
    await dialog.getByLabel('Title').fill('Space for the new hall');
    await dialog.getByRole('checkbox', { name: /approver/i }).check();
    await dialog.getByRole('button', { name: 'Ask for approval' }).click();
    await mine.getByRole('heading', { name: 'Space for the new hall' }).waitFor();

    const theirs = await openAs(decider);
    await theirs.getByRole('link', { name: 'Space for the new hall' }).first().click();
    await theirs
      .getByRole('table', { name: `Create ${CIDR}` })
      .getByText('New hall')
      .waitFor();
    await theirs.getByRole('button', { name: /^Approve/ }).click();
    await theirs.getByText('Executed', { exact: true }).waitFor();

    await mine.getByText('Executed', { exact: true }).waitFor();
    await mine.goto(`/inventory/prefixes/space?at=${encodeURIComponent(CIDR)}`);
    await mine.getByRole('link', { name: 'Open the prefix' }).click();
    const history = mine.getByRole('region', { name: 'History' });
    await history.getByText('created it').waitFor();
    expect(await history.textContent()).toContain(asker.username);
    await history.getByRole('link', { name: 'by a job' }).click();
    await mine.getByRole('link', { name: 'Space for the new hall' }).click();
    const decisions = mine.getByRole('region', { name: 'Decisions and comments' });
    await decisions.getByText(decider.username).first().waitFor();
  });
});
