import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { importRowsAs, NO_ROWS, uploadAs, WAIT, type Import } from '../../support/imports.ts';
import { recordFactory, type Finding } from '../../support/inventory.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
});
afterAll(() => app.stop());

const upload = (text: string, query: string, type = 'text/csv', client = root) =>
  uploadAs(client, text, query, type);
const rowsOf = (id: string, query = '', client = root) => importRowsAs(client, id, query);

const apply = (client: TestClient, id: string, more = {}) =>
  client.post<Import>(`/api/inventory/imports/${id}/apply`, undefined, { ...WAIT, ...more });

describe('files', () => {
  test('the rows of a dry run are imported as they were checked, and once', async () => {
    const file = 'name,status\napply1,active\napply2,broken\n';
    const dry = await upload(file, 'resource=sites&dryRun=true').expect(202);
    const key = { 'idempotency-key': 'apply-once' };
    const wet = await apply(root, dry.id, key).expect(202);
    expect(wet).toMatchObject({
      ...{ resource: 'sites', mode: 'each', dryRun: false, dryRunId: dry.id, rows: 2 },
      counts: { ...NO_ROWS, created: 1, invalid: 1 },
    });
    expect((await apply(root, dry.id, key).expect(202)).id).toBe(wet.id);
    const { items } = await root
      .get<Page<Import>>(`/api/inventory/imports?dryRunId=${dry.id}`)
      .expect(200);
    expect(items.map(({ id }) => id)).toEqual([wet.id]);
    // What was imported is no dry run.
    await apply(root, wet.id).expect(409);
  });

  test('the rows of a dry run are imported once, also by two at a time', async () => {
    const { id } = await upload('name\nonce1\n', 'resource=sites&dryRun=true').expect(202);
    const applied = await Promise.all(Array.from({ length: 4 }, () => apply(root, id)));
    expect(applied.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
    await apply(root, id).expect(409);
    const { items } = await root
      .get<Page<Import>>(`/api/inventory/imports?dryRunId=${id}`)
      .expect(200);
    expect(items).toHaveLength(1);
  });

  test('a message that is cut inside an emoji fails no other row', async () => {
    const make = recordFactory(() => root);
    const choices = Array.from({ length: 60 }, (_, i) => `${'😀'.repeat(10)}${i}`);
    for (const [name, prefix] of [
      ['even', ''],
      ['odd', 'x'],
    ] as const)
      await make('custom-fields', {
        ...{ resource: 'regions', name, type: 'choice' },
        choices: [`${prefix}first`, ...choices],
      });
    const lines = [{ even: 'no' }, { odd: 'no' }, {}].map((customFields, i) =>
      JSON.stringify({ name: `emoji${i}`, customFields }),
    );
    const ended = await upload(lines.join('\n'), 'resource=regions', 'application/x-ndjson').expect(
      202,
    );
    expect(ended).toMatchObject({ status: 'succeeded', counts: { created: 1, invalid: 2 } });
    const rows = await rowsOf(ended.id);
    const messages = rows.flatMap(({ errors }) => errors.map(({ message }) => message));
    expect(messages).toHaveLength(2);
    for (const message of messages) expect(message).toMatch(/[😀x\d, ]…$/u);
  });

  test('an import that has written nothing can be tried again', async () => {
    const make = recordFactory(() => root);
    const dry = await upload('name\nagain1\n', 'resource=sites&dryRun=true').expect(202);
    const other = await make('sites', { name: 'again1' });
    const failed = await apply(root, dry.id).expect(202);
    expect(failed).toMatchObject({ status: 'failed', counts: { conflict: 1 } });
    await root.delete(`/api/inventory/sites/${other.id}`).expect(204);
    expect((await apply(root, dry.id).expect(202)).counts).toMatchObject({ created: 1 });
  });

  test('only who has sent a file sees what it has, and imports its dry run', async () => {
    const sender = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: 'content' });
    const other = app.client.as({ actor: 'bob', roles: 'platform-admin', tenant: 'content' });
    const { id } = await upload(
      'name,tenantId\nof another,elsewhere\n',
      'resource=sites&dryRun=true',
      'text/csv',
      sender,
    ).expect(202);
    const seen = (client: TestClient) => client.get(`/api/inventory/imports/${id}/report`);
    expect((await rowsOf(id, '', sender))[0]).toMatchObject({ label: 'of another' });
    expect(String((await seen(sender)).body)).toContain('of another');
    const [hidden] = await rowsOf(id, '', other);
    expect(hidden).toMatchObject({ outcome: 'invalid', label: null, resource: null });
    expect(JSON.stringify(hidden)).not.toContain('elsewhere');
    expect(String((await seen(other)).body)).not.toContain('of another');
    const read = await other.get<Import>(`/api/inventory/imports/${id}`).expect(200);
    expect(read.contentVisible).toBe(false);
    await apply(other, id).expect(403);
    // Ids may be chosen names of what others may not read.
    const { id: written } = await upload(
      'name\nwritten by the sender\n',
      'resource=sites',
      'text/csv',
      sender,
    ).expect(202);
    const [own] = await rowsOf(written, '', sender);
    expect(own).toMatchObject({ outcome: 'created', id: expect.any(String) });
    expect((await rowsOf(written, '', other))[0]).toMatchObject({ outcome: 'created', id: null });
    const text = String((await other.get(`/api/inventory/imports/${written}/report`)).body);
    expect(text).not.toContain(String(own?.id));
    expect((await root.get<Import>(`/api/inventory/imports/${id}`)).body.contentVisible).toBe(true);
    // In the tenant of another session the rows would be about other records.
    await apply(root, id).expect(409);
  });

  test('for others, findings have no message that quotes the file or names records', async () => {
    const sender = app.client.as({ actor: 'ann', roles: 'platform-admin', tenant: 'quoted' });
    const other = app.client.as({ actor: 'bob', roles: 'platform-admin', tenant: 'quoted' });
    const make = recordFactory(() => sender);
    const { id: vrfId } = await make('vrfs', { name: 'quoted' });
    const taken = await make('prefixes', { cidr: '172.29.1.0/24', vrfId });
    const file = ['172.29.9.9/24', '172.29.1.0/24', '172.29.0.0/16'];
    const { id } = await upload(
      ['cidr,vrfId', ...file.map((cidr) => `${cidr},${vrfId}`)].join('\n'),
      'resource=prefixes&dryRun=true',
      'text/csv',
      sender,
    ).expect(202);
    const rows = await rowsOf(id, '', other);
    const found = rows.map(({ errors, conflicts, warnings }) =>
      [...errors, ...conflicts, ...(warnings as Finding[])].map(({ pointer, code }) => [
        pointer,
        code,
      ]),
    );
    expect(found).toEqual([
      [['/cidr', 'host_bits']],
      [['/cidr', 'duplicate']],
      [['/cidr', 'contains_siblings']],
    ]);
    const visible = JSON.stringify(await rowsOf(id, '', sender));
    expect([visible.includes('172.29.9.0'), visible.includes(taken.id)]).toEqual([true, true]);
    const path = `/api/inventory/imports/${id}/report`;
    for (const text of [
      JSON.stringify(rows),
      ...(await Promise.all(
        ['csv', 'ndjson'].map(async (format) =>
          String((await other.get(`${path}?format=${format}`)).body),
        ),
      )),
    ]) {
      expect(text).toContain('host_bits');
      expect(text).not.toContain('172.29.');
      expect(text).not.toContain(taken.id);
    }
  });

  test('a report has a line for each finding, and its cells are no formulas', async () => {
    const file = 'name,status,address\n=cmd,broken,\nreport1,active,\n';
    const { id } = await upload(file, 'resource=sites&dryRun=true').expect(202);
    const report = async (query = '') =>
      String((await root.get(`/api/inventory/imports/${id}/report${query}`)).body);
    const [head, broken, good] = (await report()).split('\n');
    expect(head).toBe('line,outcome,id,resource,operation,label,finding,field,value,code,message');
    expect(broken).toMatch(/^2,invalid,,sites,create,'=cmd,error,status,broken,/);
    expect(good).toBe('3,created,,sites,create,report1,,,,,');
    expect((await report('?outcome=created,updated')).trim().split('\n')).toHaveLength(2);
    const lines = (await report('?format=ndjson')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual(await rowsOf(id));
  });

  describe('large rows', () => {
    const COUNT = 40;
    const ROW_BYTES = 60_000;
    const MAX_HELD = 1_048_576 + 2 * ROW_BYTES;

    /** The largest value that a statement about rows of imports sends, and the largest result. */
    async function largestOf<T>(run: () => Promise<T>) {
      const largest = { sent: 0, read: 0 };
      const { db } = app.deps;
      const onSent = ({ sql, bindings = [] }: { sql: string; bindings?: unknown[] }) => {
        if (sql.includes('import_rows'))
          largest.sent = Math.max(largest.sent, ...bindings.map((each) => String(each).length));
      };
      const onRead = (
        response: { rows?: unknown[] } | unknown[] | null,
        { sql }: { sql: string },
      ) => {
        if (sql.includes('import_rows'))
          largest.read = Math.max(largest.read, JSON.stringify(response ?? null).length);
      };
      db.on('query', onSent).on('query-response', onRead);
      try {
        return { result: await run(), largest };
      } finally {
        db.removeListener('query', onSent).removeListener('query-response', onRead);
      }
    }

    const file = Array.from(
      { length: COUNT },
      (_, i) => `{"name":"large${i}","description":"${'x'.repeat(ROW_BYTES)}"}\n`,
    ).join('');

    test.each(['dryRun=true', 'mode=each', 'mode=all'])(
      'few of them are held together (%s)',
      async (query) => {
        const { result: found, largest } = await largestOf(() =>
          upload(
            `${file}{"name":"last of ${query}"}\n`,
            `resource=regions&${query}`,
            'application/x-ndjson',
          ).expect(202),
        );
        expect(found.counts).toEqual({
          ...NO_ROWS,
          invalid: COUNT,
          [query === 'mode=all' ? 'skipped' : 'created']: 1,
        });
        expect(largest.sent).toBeLessThan(MAX_HELD);
        expect(largest.read).toBeLessThan(MAX_HELD);
      },
    );

    test('a page of rows ends early, and a report has all of them', async () => {
      const query = 'resource=regions&dryRun=true';
      const { id } = await upload(file, query, 'application/x-ndjson').expect(202);
      const { result, largest } = await largestOf(async () => {
        const lines: number[][] = [];
        for (let cursor: string | null = ''; cursor !== null;) {
          const page: Page<{ line: number }> = await root
            .get<Page<{ line: number }>>(
              `/api/inventory/imports/${id}/rows?limit=200${cursor && `&cursor=${cursor}`}`,
            )
            .expect(200);
          lines.push(page.items.map(({ line }) => line));
          cursor = page.nextCursor;
        }
        const report = await root.get(`/api/inventory/imports/${id}/report?format=ndjson`);
        return { lines, report: String(report.body).trim().split('\n') };
      });
      expect(result.lines.length).toBeGreaterThan(1);
      expect(result.lines.flat()).toEqual(Array.from({ length: COUNT }, (_, i) => i + 1));
      expect(result.report).toHaveLength(COUNT);
      expect(largest.read).toBeLessThan(MAX_HELD);
    });
  });

  test('an export has the order and the fields of its list', async () => {
    const make = recordFactory(() => root);
    for (const name of ['exported-b', 'exported-a', 'exported-c'])
      await make('sites', { name, address: `of ${name}` });
    const query = 'q=exported-&sort=-name&fields=status,name';
    const read = async (format: string) =>
      String((await root.get(`/api/inventory/sites/export?format=${format}&${query}`)).body);
    const [head, ...rows] = (await read('csv')).trim().split('\n');
    expect(head).toBe('id,status,name');
    expect(rows.map((row) => row.split(',').slice(1).join())).toEqual(
      ['c', 'b', 'a'].map((letter) => `active,exported-${letter}`),
    );
    const [first] = (await read('ndjson')).split('\n');
    expect(Object.keys(JSON.parse(first ?? '') as object)).toEqual(['id', 'status', 'name']);
  });
});
