import { expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { compileInclude } from '../../../api/http/include.ts';
import { route } from '../../../api/http/route.ts';
import { ok } from '../../../api/http/response.ts';
import { Reference } from '../../../api/http/schemas.ts';

/** The ids of tenants for which names are asked, of a list with its records in `property`. */
async function askedFor(property: string): Promise<string[]> {
  const item = Type.Object({ tenantId: Reference('tenants') });
  const list = route({
    method: 'GET',
    path: '/api/things',
    tag: 'Things',
    operationId: 'listThings',
    summary: 'List things',
    permission: 'job:read',
    responses: { 200: Type.Object({ [property]: Type.Array(item) }) },
    handle: () => Promise.resolve(ok({})),
  });
  const asked: string[] = [];
  const include = compileInclude(list, (_caller, { records }) => {
    for (const ids of records.values()) asked.push(...ids);
    return Promise.resolve({ labels: {}, people: {} });
  });
  const facets = { tenantId: { values: [{ value: 'acme', count: 7 }], exact: true, others: 0 } };
  const body = { [property]: [{ tenantId: 'beta' }], facets };
  await include({ caller: {} } as never, new Set(['labels']), ok(body));
  return asked.sort();
}

test.each(['items', 'backups'])(
  'the values of facets beside %s are named, too',
  async (property) => {
    expect(await askedFor(property)).toEqual(['acme', 'beta']);
  },
);
