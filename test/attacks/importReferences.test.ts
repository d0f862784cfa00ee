import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { csv, importedRows } from '../support/attacks/files.ts';
import {
  createBases,
  readTargets,
  referencesOf,
  sentIn,
  type Bases,
  type Reference,
} from '../support/attacks/referenceCases.ts';
import { seedInventory, seedShared } from '../support/attacks/tenantEstate.ts';
import { dumpOwn, idsOf } from '../support/attacks/tenantRows.ts';
import { leaksOfAcme, NETWORK_OF_ACME } from '../support/attacks/twoTenants.ts';
import { isThorough } from '../support/effort.ts';
import type { TestClient } from '../support/client.ts';
import { admin } from '../support/users.ts';

/**
 * Rows of files refer to records of acme by id and by each name, in every field. The outcome of each row is that of the row
 * after it, which refers to nothing. The last rows of a file refer to what its sender has, and are imported.
 */
const OWN = 'own';

let app: TestApp;
let mallory: TestClient;
let bases: Bases;
let references: Reference[];
let ofAcme: ReadonlySet<string>;

beforeAll(async () => {
  app = await startApp();
  const root = admin(app);
  const shared = await seedShared(app);
  const seed = async (tenant: string, network: number) => {
    await root.post('/api/inventory/tenants', { id: tenant, name: `${tenant} Ltd` }).expect(201);
    const client = app.client.as({ actor: `${tenant}-admin`, roles: 'platform-admin', tenant });
    const own = await seedInventory(client, { label: tenant, network }, shared);
    return { client, own: { ...own, tenants: tenant } };
  };
  const acme = await seed('acme', NETWORK_OF_ACME);
  const beta = await seed('beta', 12);
  mallory = beta.client;
  bases = await createBases(mallory, beta.own, shared);
  const targets = await readTargets(acme.client, acme.own, [...Object.keys(bases), 'tenants']);
  references = Object.keys(bases).flatMap((resource) => referencesOf(resource, targets));
  ofAcme = await idsOf(app.deps.db, 'acme');
});
afterAll(() => app.stop());

/** A row, and what is known about the reference in it. */
type FileRow = { resource: string; sent: unknown; record: Record<string, unknown> };

const baseOf = (resource: string): Record<string, unknown> => ({ ...bases[resource]?.() });
const ownRow = (resource: string): FileRow => ({ resource, sent: OWN, record: baseOf(resource) });

/** Two rows for a reference: to the record of acme, and to none. `fill` writes it into the record. */
const rowsFor = (
  reference: Reference,
  fill: (base: Record<string, unknown>, value: unknown) => Record<string, unknown>,
): FileRow[] =>
  [reference.foreign, reference.none].map((sent) => ({
    resource: reference.resource,
    sent,
    record: fill(baseOf(reference.resource), sent),
  }));

/** What is wrong with the outcomes of rows: those of each two differ, have something of acme, or are not refused. */
async function judge(rows: readonly FileRow[], query: string, text: string, type: string) {
  const reports = await importedRows(mallory, query, text, type);
  const seen = reports.map(({ line, ...report }, i) => {
    const sent = rows[i]?.sent;
    const what = JSON.stringify(report);
    return sent === OWN ? report.outcome : what.replaceAll(sentIn(sent), '<sent>');
  });
  return rows.flatMap(({ sent, record, resource }, i) => {
    if (sent === OWN) return seen[i] === 'created' ? [] : [[resource, reports[i]]];
    const [given, other] = i % 2 === 0 ? [seen[i], seen[i + 1]] : [seen[i], seen[i - 1]];
    const isRefused = ['invalid', 'conflict'].includes(reports[i]?.outcome ?? '');
    const isFine = isRefused && given === other && leaksOfAcme(given ?? '', ofAcme).length === 0;
    return isFine ? [] : [[resource, record, given, other]];
  });
}

/**
 * A file is a job, and what follows its columns is the same for CSV and NDJSON: by default CSV has all references of one
 * resource, and those by name of the others.
 */
const isChosen = ({ resource, field, by }: Reference): boolean =>
  isThorough() || resource === 'devices' || (by === 'name' && !(field in baseOf(resource)));

test('rows of CSV that refer to another tenant end like those that refer to nothing', async () => {
  expect(references.length).toBeGreaterThan(50);
  const before = await dumpOwn(app.deps.db, 'acme');
  // A file names a field once: what each row of the resource has by id is not there by name too.
  const files = Map.groupBy(references.filter(isChosen), ({ resource, field, by }) =>
    [resource, by, by !== null && field in baseOf(resource) ? field : ''].join(),
  );
  const wrong: unknown[] = [];
  for (const inFile of files.values()) {
    const resource = inFile[0]?.resource ?? '';
    const rows = inFile.flatMap((reference) =>
      rowsFor(reference, ({ [reference.field]: _, ...base }, value) =>
        reference.by === null
          ? { ...base, [reference.field]: value }
          : { ...base, [`${reference.field}.${reference.by}`]: sentIn(value) },
      ),
    );
    const hasOwnById = inFile.every(({ field, by }) => by === null || !(field in baseOf(resource)));
    if (hasOwnById) rows.push(ownRow(resource));
    const text = csv(rows.map(({ record }) => record));
    wrong.push(...(await judge(rows, `resource=${resource}&dryRun=true`, text, 'text/csv')));
  }
  expect(wrong).toEqual([]);
  expect(await dumpOwn(app.deps.db, 'acme')).toEqual(before);
});

test.each(['dryRun=true', 'mode=each'])('and so do lines of NDJSON, with %s', async (query) => {
  const before = await dumpOwn(app.deps.db, 'acme');
  const rows = [
    ...references.flatMap((reference) =>
      rowsFor(reference, (base, value) => ({ ...base, [reference.field]: value })),
    ),
    ...Object.keys(bases).map(ownRow),
  ];
  const text = rows
    .map(({ resource, record }) => `${JSON.stringify({ resource, operation: 'create', record })}\n`)
    .join('');
  expect(await judge(rows, query, text, 'application/x-ndjson')).toEqual([]);
  expect(await dumpOwn(app.deps.db, 'acme')).toEqual(before);
});
