import { expect } from '@jest/globals';
import type { TestClient } from './client.ts';

/** A record that must come to be. */
export const making =
  (client: () => TestClient) =>
  async (resource: string, record: object): Promise<any> => {
    const { status, body } = await client().post(`/api/inventory/${resource}`, record);
    expect([status, body]).toEqual([201, body]);
    return body;
  };

export type Finding = {
  pointer: string | null;
  code: string;
  message: string;
  resource?: string | null;
  id?: string | null;
};

/** What the validation says, and the write after it: they must agree. `id` makes it a change. */
export const trying =
  (client: () => TestClient) =>
  async (resource: string, record: Record<string, unknown>, operation = 'create') => {
    const said = await client().post('/api/validation/inventory', { resource, operation, record });
    const { id, ...fields } = record;
    const path = `/api/inventory/${resource}`;
    const done =
      operation === 'create'
        ? await client().post(path, record)
        : operation === 'update'
          ? await client().put(`${path}/${String(id)}`, fields)
          : await client().delete(`${path}/${String(id)}`);
    expect([said.status, done.status, done.body]).toEqual([
      done.status < 300 ? 200 : done.status,
      done.status,
      done.body,
    ]);
    const { errors, conflicts, warnings } = said.body.validation as {
      errors: Finding[];
      conflicts: Finding[];
      warnings: Finding[];
    };
    const found = [...errors, ...conflicts].map(({ pointer, code }) => `${pointer ?? '-'} ${code}`);
    if (errors.length > 0)
      expect(
        done.body.errors.map((each: Finding) => `${each.pointer ?? '-'} ${each.code}`),
      ).toEqual(errors.map(({ pointer, code }) => `${pointer ?? '-'} ${code}`));
    return {
      status: done.status,
      body: done.body,
      found,
      errors,
      conflicts,
      warnings: warnings.map(({ code }) => code),
      effects: said.body.effects as any[],
      candidate: said.body.candidateRecord,
    };
  };
