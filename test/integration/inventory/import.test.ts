import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { createImportRun } from '../../../services/inventory/importRun.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { importRowsAs, NO_ROWS, uploadAs, WAIT, type Import } from '../../support/imports.ts';
import { recordFactory, type InventoryRecord, type RecordPage } from '../../support/inventory.ts';
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

test('a dry run that finds others running and waiting is tried again later', async () => {
  const client = app.client.as({ tenant: 'busy' });
  const holder = { kind: 'gateway', tenantId: 'busy', actorId: 'another' } as const;
  const { dryRuns } = app.deps.slots;
  const running = dryRuns.takeNow(holder);
  // On a busy machine the wait can end before the test does; then the import waits for as long, with the same outcome.
  const waiting = dryRuns.take({ ...holder, actorId: 'third' }).catch(() => () => undefined);
  try {
    const { id } = await client
      .post<Import>('/api/inventory/import?resource=regions&dryRun=true', 'name\nnorth', {
        'content-type': 'text/csv',
      })
      .expect(202);
    const jobs = async () =>
      (await client.get<Page<JobRecord>>('/api/jobs?type=inventory.import').expect(200)).items;
    const [job] = await eventually(jobs, ([found]) => found?.error != null);
    expect(job).toMatchObject({ status: 'running', attempts: 1, error: { code: 'busy' } });
    expect(await app.deps.db('jobs').where({ id: job?.id }).pluck('slot')).toEqual([null]);
    expect(await rowsOf(id, '', client)).toMatchObject([{ outcome: null }]);
    await client.post(`/api/jobs/${String(job?.id)}/cancel`).expect(202);
  } finally {
    running();
    (await waiting)();
  }
});

test.each([
  ['each', 'importWrites'],
  ['all', 'wholeImports'],
] as const)('the imports (%s) of a tenant write one after another only', async (mode, slots) => {
  const holder = { kind: 'system', tenantId: `writing-${mode}`, actorId: 'another' } as const;
  const release = app.deps.slots[slots].takeNow(holder);
  const importAt = async (tenant: string, wait: boolean) =>
    app.client
      .as({ tenant })
      .post<Import>(`/api/inventory/import?resource=regions&mode=${mode}`, 'name\nnorth', {
        'content-type': 'text/csv',
        ...(wait && WAIT),
      })
      .expect(202);
  const waiting = await importAt(holder.tenantId, false);
  expect(await importAt(`beside-${mode}`, true)).toMatchObject({ status: 'succeeded', done: 1 });
  const read = () =>
    app.client
      .as({ tenant: holder.tenantId })
      .get<Import>(`/api/inventory/imports/${waiting.id}`)
      .expect(200);
  await eventually(read, ({ status }) => status === 'running');
  expect(await read()).toMatchObject({ status: 'running', done: 0 });
  release();
  await eventually(read, ({ status, done }) => status === 'succeeded' && done === 1);
});

test('an attempt that ends while rows are planned says nothing about them', async () => {
  const client = app.client.as({ tenant: 'stopped' });
  const holder = { kind: 'system', tenantId: 'stopped', actorId: 'another' } as const;
  const release = app.deps.slots.wholeImports.takeNow(holder);
  try {
    const { id } = await client
      .post<Import>('/api/inventory/import?resource=regions&mode=all', 'name\none\ntwo', {
        'content-type': 'text/csv',
      })
      .expect(202);
    const { questions } = app.deps.inventory;
    for (const name of ['writeAll', 'dryRun'] as const) {
      const stopping = new AbortController();
      // A worker that stops interrupts the plan at its next pause.
      const plan = () => {
        stopping.abort(new Error('WORKER_SHUTDOWN'));
        return Promise.reject(stopping.signal.reason as Error);
      };
      const dryRunInSteps: typeof questions.dryRunInSteps = (caller, signal, steps) =>
        questions.dryRunInSteps(caller, signal, (asked, trx) => steps({ ...asked, plan }, trx));
      const run = createImportRun({
        ...app.deps,
        ...app.deps.inventory,
        questions: { ...questions, dryRunInSteps },
      });
      await expect(run[name](id, stopping.signal, () => undefined)).rejects.toThrow(
        'WORKER_SHUTDOWN',
      );
    }
    expect(await rowsOf(id, '', client)).toMatchObject([{ outcome: null }, { outcome: null }]);
  } finally {
    release();
  }
});

test('an import that writes all rows together for too long writes none, and may be tried again', async () => {
  const client = app.client.as({ tenant: 'slow' });
  const holder = { kind: 'system', tenantId: 'slow', actorId: 'another' } as const;
  const release = app.deps.slots.wholeImports.takeNow(holder);
  try {
    const { id } = await client
      .post<Import>('/api/inventory/import?resource=regions&mode=all', 'name\nslow', {
        'content-type': 'text/csv',
      })
      .expect(202);
    const { signal } = new AbortController();
    const slots = { ...app.deps.slots, wholeImports: app.deps.slots.logStreams };
    const run = createImportRun({ ...app.deps, ...app.deps.inventory, slots, maxWriteAllMs: 0 });
    await expect(run.writeAll(id, signal, () => undefined)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(await rowsOf(id, '', client)).toMatchObject([{ outcome: null }]);
    const { items } = await client.get<RecordPage>('/api/inventory/regions').expect(200);
    expect(items).toEqual([]);
  } finally {
    release();
  }
});

describe('import', () => {
  test('a CSV file with names, bad rows and conflicts: a report for every row', async () => {
    await root.post('/api/inventory/vrfs', { name: 'blue' });
    const file = [
      'cidr,vrfId.name,status,description,tags',
      '10.0.0.0/8,blue,container,"all, of it",',
      '10.1.0.0/16,blue,,,',
      '10.1.0.1/16,blue,,,',
      '10.1.0.0/16,blue,,,',
      '10.2.0.0/16,green,,,',
      '192.0.2.0/24,,,,',
    ].join('\n');
    const { status, body, headers } = await upload(file, 'resource=prefixes');
    expect([status, body.counts]).toEqual([
      202,
      { ...NO_ROWS, created: 3, invalid: 2, conflict: 1 },
    ]);
    expect(headers.get('location')).toBe(`/api/inventory/imports/${body.id}`);
    const rows = await rowsOf(body.id);
    expect(rows.map(({ line, outcome }) => [line, outcome])).toEqual([
      [2, 'created'],
      [3, 'created'],
      [4, 'invalid'],
      [5, 'conflict'],
      [6, 'invalid'],
      [7, 'created'],
    ]);
    expect(rows[2]?.errors).toEqual([
      {
        pointer: '/cidr',
        code: 'host_bits',
        message: 'has host bits set; suggested: 10.1.0.0/16',
        value: '10.1.0.1/16',
      },
    ]);
    expect(rows[2]).toMatchObject({ resource: 'prefixes', operation: 'create', id: null });
    expect(rows.map(({ label }) => label).slice(2, 4)).toEqual(['10.1.0.1/16', '10.1.0.0/16']);
    expect(rows[4]?.errors[0]?.value).toBe('{"name":"green"}');
    expect(rows[3]?.conflicts[0]).toMatchObject({
      code: 'duplicate',
      message: expect.stringMatching(/, in the same request$/),
      resource: 'prefixes',
      id: rows[1]?.id,
    });
    expect(rows[4]?.errors[0]).toMatchObject({ pointer: '/vrfId', code: 'not_found' });
    const found = await root.get<RecordPage>('/api/inventory/prefixes?cidr=10.0.0.0/8').expect(200);
    const top = assertDefined(found.items[0], '10.0.0.0/8');
    expect([top.description, top.status, rows[0]?.id]).toEqual(['all, of it', 'container', top.id]);
    const inner = await root
      .get<InventoryRecord>(`/api/inventory/prefixes/${rows[1]?.id}`)
      .expect(200);
    expect(inner.parentPrefixId).toBe(top.id);
  });

  test('a dry run says the same as the import that follows, and writes nothing', async () => {
    const count = async () => (await app.deps.db('sites').count('* as n'))[0]?.n;
    const file = ['name', 'dry1', 'dry2', 'dry1'].map((line) => line).join('\n');
    const before = await count();
    const dry = await upload(file, 'resource=sites&dryRun=true').expect(202);
    expect([dry.counts, dry.dryRun, await count()]).toEqual([
      { ...NO_ROWS, created: 2, conflict: 1 },
      true,
      before,
    ]);
    // Nothing will have the id of the row above in the plan.
    const rows = await rowsOf(dry.id);
    expect(rows[2]?.conflicts[0]).toMatchObject({
      code: 'duplicate',
      message: expect.stringMatching(/, in the same request$/),
      resource: 'sites',
      id: null,
    });
    const wet = await upload(file, 'resource=sites').expect(202);
    expect(wet.counts).toEqual(dry.counts);
  });

  test('an import of all rows or none names no record that it does not create', async () => {
    const { id } = await upload('name\nnone1\nnone1\n', 'resource=sites&mode=all').expect(202);
    const rows = await rowsOf(id);
    expect(rows[1]?.conflicts).toMatchObject([{ code: 'duplicate', id: null }]);
  });

  test('what was exported is taken in again: changed where it has an id', async () => {
    await upload('id,name,color\ncore,Core,#00a1ff\nedge,Edge,\n', 'resource=tags');
    for (const [format, type] of [
      ['csv', 'text/csv'],
      ['ndjson', 'application/x-ndjson'],
    ] as const) {
      const file = await root.get(`/api/inventory/tags/export?format=${format}`);
      expect([file.status, file.headers.get('content-type')]).toEqual([
        200,
        expect.stringContaining(type),
      ]);
      const again = await upload(
        String(file.body).replace(/Edge( csv)?/, `Edge ${format}`),
        'resource=tags',
        type,
      ).expect(202);
      expect(again.counts).toEqual({ ...NO_ROWS, updated: 1, unchanged: 1 });
      expect((await root.get('/api/inventory/tags/edge')).body).toMatchObject({
        name: `Edge ${format}`,
        color: null,
      });
    }
  });

  test('texts that read like formulas and numbers below zero survive an export and its import', async () => {
    const texts = ['=1+1', '+1', '-1', '@a', "'=x", "''-x", "'plain", '\t=tab', '\r-cr', '-5\n6'];
    const make = recordFactory(() => root);
    for (const [i, description] of texts.entries())
      await make('sites', { name: `=formula${i}`, description, latitude: -33.5 });
    const { body } = await root.get('/api/inventory/sites/export?format=csv&q=formula');
    const file = String(body);
    expect(file).toMatch(/,'=formula0,/);
    expect(file).toMatch(/,-33\.5,/);
    for (const cell of file.split(/[\n,]/)) expect(cell).not.toMatch(/^"?[=+@\t\r]|^"?-(?!33\.5$)/);
    const again = await upload(file, 'resource=sites').expect(202);
    expect(again.counts).toEqual({ ...NO_ROWS, unchanged: texts.length });
    const { items } = await root
      .get<RecordPage>('/api/inventory/sites?q=formula&sort=name')
      .expect(200);
    expect(items.map(({ description, version }) => [description, version])).toEqual(
      texts.map((text) => [text, 1]),
    );
  });

  test('texts with backslashes are no escapes', async () => {
    const description = String.raw`C:\udata \u0000 \ud800`;
    await recordFactory(() => root)('sites', { name: 'backslashes', description });
    for (const [format, type] of [
      ['csv', 'text/csv'],
      ['ndjson', 'application/x-ndjson'],
    ]) {
      const { body } = await root.get(`/api/inventory/sites/export?format=${format}&q=backslashes`);
      const { counts } = await upload(String(body), 'resource=sites', type).expect(202);
      expect(counts).toEqual({ ...NO_ROWS, unchanged: 1 });
    }
  });

  test('null is not given in NDJSON; an empty cell of a required field is an error', async () => {
    const line = '{"id":null,"name":"nulls","status":null,"tags":null,"customFields":null}';
    const created = await upload(line, 'resource=sites', 'application/x-ndjson').expect(202);
    expect(created.counts).toEqual({ ...NO_ROWS, created: 1 });
    const [row] = await rowsOf(created.id);
    const emptied = await upload(`id,name\n${row?.id},\n`, 'resource=sites').expect(202);
    expect(emptied.counts).toEqual({ ...NO_ROWS, invalid: 1 });
  });

  test('a key of customFields that objects have by themselves is no custom field', async () => {
    for (const key of ['__proto__', 'constructor', 'toString']) {
      const row = `name,customFields\nproto,"{""${key}"":{}}"\n`;
      const { counts } = await upload(row, 'resource=sites').expect(202);
      expect([key, counts]).toEqual([key, { ...NO_ROWS, invalid: 1 }]);
    }
    const site = await recordFactory(() => root)('sites', { name: 'proto' });
    await root
      .put(`/api/inventory/sites/${site.id}`, '{"customFields":{"__proto__":{}}}', {
        'content-type': 'application/json',
      })
      .then(({ status }) => expect(status).toBe(400));
  });

  test.each(['each', 'all'])(
    'an import in which no row is valid fails, and so does its dry run (mode %s)',
    async (mode) => {
      for (const dryRun of [true, false]) {
        const { status, counts, jobId } = await upload(
          'cidr\n10.0.0.1/8\nx\n',
          `resource=prefixes&mode=${mode}&dryRun=${dryRun}`,
        ).expect(202);
        expect([status, counts]).toEqual(['failed', { ...NO_ROWS, invalid: 2 }]);
        const job = await root
          .get<{ status: string; error: { code: string; message: string } }>(`/api/jobs/${jobId}`)
          .expect(200);
        expect(job.error).toMatchObject({
          code: 'nothing_imported',
          message: expect.stringMatching(/^Nothing was imported: 2 of 2 rows invalid, 0 /),
        });
      }
    },
  );

  test('the mode all writes every row or none, across batches', async () => {
    const count = async () =>
      Number((await app.deps.db('regions').where('name', 'like', 'atomic%').count('* as n'))[0]?.n);
    const names = Array.from({ length: 600 }, (_, i) => `atomic${i}`);
    const send = (lines: string[], more = '') =>
      upload(`name\n${lines.join('\n')}\n`, `resource=regions&mode=all${more}`).expect(202);
    // The first row is found twice: in the last batch, and as itself.
    const bad = [...names, 'atomic0', ' x '];
    for (const more of ['&dryRun=true', '']) {
      const rejected = await send(bad, more);
      expect([rejected.status, rejected.counts, rejected.done, await count()]).toEqual([
        'failed',
        { ...NO_ROWS, skipped: 600, conflict: 1, invalid: 1 },
        602,
        0,
      ]);
      const [row] = await rowsOf(rejected.id, '&outcome=skipped');
      expect(row).toMatchObject({ line: 2, id: null, errors: [] });
      expect((await rowsOf(rejected.id, '&outcome=conflict')).map(({ line }) => line)).toEqual([
        602,
      ]);
    }
    const written = await send(names);
    expect([written.status, written.mode, written.counts, await count()]).toEqual([
      'succeeded',
      'all',
      { ...NO_ROWS, created: 600 },
      600,
    ]);
    await root
      .post(
        '/api/inventory/import?resource=regions&mode=all',
        `name\n${Array.from({ length: 10_001 }, (_, i) => `r${i}`).join('\n')}\n`,
        { 'content-type': 'text/csv' },
      )
      .then(({ status }) => expect(status).toBeGreaterThanOrEqual(400));
  }, 60_000);

  test('in the mode all, a row that the database refuses rejects the whole file', async () => {
    const vrf = await recordFactory(() => root)('vrfs', { name: 'refused' });
    await app.deps.db.raw(
      "ALTER TABLE prefixes ADD CONSTRAINT no_fourteen CHECK (cidr <> '10.14.0.0/16')",
    );
    const file = `cidr,vrfId\n10.13.0.0/16,${vrf.id}\n10.14.0.0/16,${vrf.id}\n`;
    const { status, counts } = await upload(file, 'resource=prefixes&mode=all').expect(202);
    await app.deps.db.raw('ALTER TABLE prefixes DROP CONSTRAINT no_fourteen');
    expect([status, counts]).toEqual(['failed', { ...NO_ROWS, conflict: 2 }]);
    expect(
      (await root.get<RecordPage>(`/api/inventory/prefixes?vrfId=${vrf.id}`)).body.items,
    ).toEqual([]);
  });

  test('NDJSON of several resources, each line on top of those before it', async () => {
    const lines = [
      { resource: 'manufacturers', operation: 'create', record: { name: 'Arista' } },
      {
        resource: 'device-types',
        operation: 'create',
        record: { manufacturerId: { name: 'Arista' }, model: '7050' },
      },
      { resource: 'sites', record: { name: 'fra1' } },
      {
        resource: 'devices',
        record: { name: 'sw1', siteId: { name: 'fra1' }, deviceTypeId: { model: '7050' } },
      },
    ];
    const { counts } = await upload(
      lines.map((line) => JSON.stringify(line)).join('\n'),
      '',
      'application/x-ndjson',
    ).expect(202);
    expect(counts.created).toBe(4);
  });

  test.each([
    [
      'columns that there are not, all of them, with those that there are',
      `cidr,colour,${Array.from({ length: 12 }, (_, i) => `x${i}`).join(',')}\n10.0.0.0/8,red\n`,
      'resource=prefixes',
      'text/csv',
      400,
      /"colour", "x0", .*"x11"\. Columns are id, tenantId, .*cidr, vrfId, vrfId\.name, .*customFields/,
    ],
    ['a row with too many cells', 'name\na\nb,c\n', 'resource=sites', 'text/csv', 400, /line 3/],
    [
      'a line that is no JSON',
      '{"name":"x"}\n{',
      'resource=sites',
      'application/x-ndjson',
      400,
      /line 2/,
    ],
    [
      'a line that is nested too deep',
      `{"name":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
      'resource=sites',
      'application/x-ndjson',
      400,
      /line 1: is nested deeper/,
    ],
    [
      'a line with a NUL',
      '{"name":"ok"}\n{"name":"a\\u0000"}',
      'resource=sites',
      'application/x-ndjson',
      400,
      /line 2: contains a character/,
    ],
    [
      'a cell of JSON with a number that would lose digits',
      'name,customFields\na,"{""n"": [9007199254740993]}"\n',
      'resource=sites',
      'text/csv',
      400,
      /line 2: customFields\/n\/0 is a number that a double/,
    ],
    [
      'a cell of JSON with a repeated key',
      'name,customFields\na,"{""n"":1,""n"":2}"\n',
      'resource=sites',
      'text/csv',
      400,
      /line 2: customFields\/n is repeated/,
    ],
    [
      'a number that nothing can hold',
      'name,latitude\na,1e400\n',
      'resource=sites',
      'text/csv',
      400,
      /line 2: latitude is a number that a double/,
    ],
    [
      'two columns of one field',
      'name,siteId,siteId.name\na,b,c\n',
      'resource=devices',
      'text/csv',
      400,
      /line 1: names "siteId" twice/,
    ],
    [
      'a column of a reference with too many parts',
      'name,siteId.name.x\na,b\n',
      'resource=devices',
      'text/csv',
      400,
      /no column "siteId.name.x"/,
    ],
    ['an empty file', 'name\n', 'resource=sites', 'text/csv', 400, /no rows/],
    ['CSV of nothing in particular', 'name\na\n', '', 'text/csv', 400, /required for CSV/],
    ['another type', '<a/>', 'resource=sites', 'text/xml', 415, /text\/csv/],
  ])(
    '%s is refused as a whole, and names the line',
    async (_, file, query, type, status, detail) => {
      const count = async () =>
        (await root.get<Page<Import>>('/api/inventory/imports').expect(200)).items.length;
      const before = await count();
      const refused = await root
        .post<ProblemBody>(`/api/inventory/import?${query}`, file, { 'content-type': type })
        .expect(status);
      expect(refused.detail).toMatch(detail);
      expect(await count()).toBe(before);
    },
  );

  test('the same key and file is one import; a byte order mark is no part of the first line', async () => {
    const send = (text: string) =>
      root.post<Import>('/api/inventory/import?resource=sites', text, {
        'content-type': 'application/x-ndjson',
        'idempotency-key': 'file-1',
        ...WAIT,
      });
    const [first, again, other, corrected] = [
      await send('\ufeff{"name":"bom"}\n'),
      await send('\ufeff{"name":"bom"}\n'),
      await send('{"name":"another"}\n'),
      await send('\ufeff{"name":"bow"}\n'),
    ];
    expect([
      first.body.counts.created,
      again.body.id,
      again.headers.get('idempotent-replayed'),
      other.status,
      corrected.status,
    ]).toEqual([1, first.body.id, 'true', 422, 422]);
  });

  test('odd rows are invalid, one by one; a line separator inside a text is none of the file', async () => {
    const lines = [
      '{"cidr":{"toString":1}}',
      '{"cidr":"198.51.100.0/24","description":"a\u2028b"}',
      '{"vrfId":{"name":{"toString":1}},"cidr":"10.0.0.0/8"}',
    ];
    const { id } = await upload(
      lines.join('\n'),
      'resource=prefixes',
      'application/x-ndjson',
    ).expect(202);
    expect((await rowsOf(id)).map(({ outcome }) => outcome)).toEqual([
      'invalid',
      'created',
      'invalid',
    ]);
  });

  test('a row that cannot be written does not hold up the others', async () => {
    const vrf = await recordFactory(() => root)('vrfs', { name: 'held' });
    // Behind the planner's back: a constraint that it does not know of.
    await app.deps.db.raw(
      "ALTER TABLE prefixes ADD CONSTRAINT no_thirteen CHECK (cidr <> '10.13.0.0/16')",
    );
    const { id, counts } = await upload(
      `cidr,vrfId\n${Array.from({ length: 20 }, (_, i) => `10.${i}.0.0/16,${vrf.id}`).join('\n')}\n`,
      'resource=prefixes',
    ).expect(202);
    await app.deps.db.raw('ALTER TABLE prefixes DROP CONSTRAINT no_thirteen');
    expect(counts).toMatchObject({ created: 19, conflict: 1 });
    expect((await rowsOf(id, '&outcome=conflict')).map(({ line }) => line)).toEqual([15]);
  }, 60_000);

  test('a file that is too large is cut off', async () => {
    const { status } = await upload(`name\n${'x'.repeat(33 * 1_048_576)}`, 'resource=sites');
    expect(status).toBe(413);
  });

  test('rows that the sender may not write are refused one by one; strangers do not see the import', async () => {
    const acme = root.as({ actor: 'ann', roles: 'operator', tenant: 'acme' });
    const { id, counts } = await upload(
      'name,tenantId\nmine,acme\ntheirs,platform\n',
      'resource=sites',
      'text/csv',
      acme,
    ).expect(202);
    expect(counts).toMatchObject({ created: 1, invalid: 1 });
    expect(await rowsOf(id, '&outcome=invalid', acme)).toMatchObject([
      { line: 3, errors: [{ pointer: '/tenantId', code: 'permission_denied' }] },
    ]);
    expect(
      (
        await root
          .as({ actor: 'bob', roles: 'operator', tenant: 'other' })
          .get(`/api/inventory/imports/${id}`)
      ).status,
    ).toBe(404);
  });
});
