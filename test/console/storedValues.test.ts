import { expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser } from '../support/users.ts';

type Created = { id: string };

describePages('stored values that no longer fit', (console) => {
  test('are shown in forms, and kept unless they are taken away', async () => {
    const client = admin(console.app);
    const create = (resource: string, fields: object) =>
      client.post<Created>(`/api/inventory/${resource}`, fields).expect(201);
    const fields = { resource: 'sites', choices: ['red', 'green', 'blue'] };
    const lights = await create('custom-fields', { ...fields, name: 'lights', type: 'choices' });
    const door = await create('custom-fields', { ...fields, name: 'door', type: 'choice' });
    const customFields = { lights: ['red', 'green'], door: 'green' };
    const site = await create('sites', { name: 'ams1', customFields });
    for (const { id } of [lights, door])
      await client
        .put(`/api/inventory/custom-fields/${id}`, { choices: ['red', 'blue'] })
        .expect(200);
    const path = `/api/inventory/sites/${site.id}`;
    const stored = async () =>
      (await client.get<{ customFields: object }>(path).expect(200)).customFields;

    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, `/inventory/sites/${site.id}/edit`);
    const old = page.getByLabel('green (no longer offered)');
    await old.waitFor();
    expect(await old.isChecked()).toBe(true);
    expect(await page.getByLabel('Door').inputValue()).toBe('unknown');
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByLabel('blue', { exact: true }).check();
    await page.getByRole('button', { name: /^Save/ }).click();
    await page.waitForURL((url) => !url.pathname.endsWith('/edit'));
    expect(await stored()).toEqual({ lights: ['red', 'blue', 'green'], door: 'green' });

    await page.goto(`/inventory/sites/${site.id}/edit`);
    await old.uncheck();
    await page.getByRole('button', { name: /^Save/ }).click();
    await page.waitForURL((url) => !url.pathname.endsWith('/edit'));
    expect(await stored()).toEqual({ lights: ['red', 'blue'], door: 'green' });
  });
});
