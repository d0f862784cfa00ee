import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEntryRecord, AuditHeadRecord } from '../../../api/audit/routes.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { archiveRow } from '../../support/auditArchives.ts';
import type { ProblemBody } from '../../support/client.ts';
import { admin, type Page } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

type ChainPage = Page<AuditEntryRecord> & { lastPosition: number | null };

const row = (tenantId: string, subject: number, action = 'test.made') => ({
  id: app.deps.ids.next('aud'),
  tenant_id: tenantId,
  actor_id: 'ann',
  via: 'gateway',
  action,
  outcome: 'done',
  subject_type: 'test',
  subject_id: String(subject),
  request_id: 'req',
  at: new Date(),
});
const add = (...rows: ReturnType<typeof row>[]) => app.deps.db('audit_entries').insert(rows);

/** Seals what is committed. The application seals, too. */
async function seal(tenantId: string): Promise<void> {
  const unsealed = () =>
    app.deps.db('audit_entries').where({ tenant_id: tenantId, position: null }).first();
  while (await unsealed()) await app.deps.auditSealer.seal();
}

const pageAfter = (tenantId: string, after: number, query = '') =>
  admin(app).get<ChainPage>(`/api/audit?tenantId=${tenantId}&after=${after}${query}`).expect(200);
const subjectsOf = ({ items }: ChainPage) => items.map(({ subject }) => Number(subject.id));
const problemAfter = (tenantId: string, after: number, path = '/api/audit') =>
  admin(app).get<ProblemBody>(`${path}?tenantId=${tenantId}&after=${after}`).expect(410);

describe('the entries after a position', () => {
  test('include one that was committed after later ones had been read', async () => {
    const late = row('late', 1);
    const trx = await app.deps.db.transaction();
    await trx('audit_entries').insert(late);
    await add(row('late', 2), row('late', 3));
    await seal('late');
    const early = await pageAfter('late', 0);
    await trx.commit();
    await seal('late');
    expect(subjectsOf(early)).toEqual([2, 3]);
    expect(early.lastPosition).toBe(2);
    const rest = await pageAfter('late', 2);
    expect(subjectsOf(rest)).toEqual([1]);
    expect(rest.items[0]?.seal?.position).toBe(3);
  });

  test('come in pages, and a filter excludes none of the positions', async () => {
    await add(...[1, 2, 3, 4, 5].map((n) => row('pages', n, n % 2 ? 'test.odd' : 'test.even')));
    await seal('pages');
    const seen: number[] = [];
    for (let after = 0; ;) {
      const page = await pageAfter('pages', after, '&limit=2');
      seen.push(...subjectsOf(page));
      if (page.items.length === 0) break;
      after = page.lastPosition ?? 0;
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    const even = await pageAfter('pages', 0, '&action=test.even&limit=1');
    expect([subjectsOf(even), even.lastPosition]).toEqual([[2], 2]);
    const next = await pageAfter(
      'pages',
      0,
      `&action=test.even&limit=1&cursor=${even.nextCursor ?? ''}`,
    );
    expect([subjectsOf(next), next.nextCursor, next.lastPosition]).toEqual([[4], null, 5]);
    const { body } = await admin(app).get<string>('/api/audit/export?tenantId=pages&after=3');
    expect(
      body
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as AuditEntryRecord).seal?.position),
    ).toEqual([4, 5]);
  });

  test('need one tenant, and the permission there', async () => {
    for (const path of ['/api/audit', '/api/audit/export']) {
      await admin(app).get(`${path}?after=0`).expect(400);
      await admin(app).get(`${path}?after=0&tenantId=red,blue`).expect(400);
      const red = app.client.as({ roles: 'auditor', tenant: 'red' });
      await red.get(`${path}?after=0&tenantId=red`).expect(200);
      await red.get(`${path}?after=0&tenantId=blue`).expect(403);
    }
    const { lastPosition } = await admin(app).get<ChainPage>('/api/audit?limit=1').expect(200);
    expect(lastPosition).toBeNull();
  });

  test('are an error where some are archived, or the chain ends before', async () => {
    await add(...[1, 2, 3].map((n) => row('moved', n)));
    await seal('moved');
    await app.deps.db('audit_archives').insert({
      ...archiveRow(app, 'moved'),
      job_id: app.deps.ids.next('job'),
      status: 'completed',
      checkpoint_at: new Date(),
    });
    for (const path of ['/api/audit', '/api/audit/export']) {
      expect(await problemAfter('moved', 1, path)).toMatchObject({
        code: 'entries_archived',
        oldestPosition: 3,
      });
      expect(await problemAfter('moved', 4, path)).toMatchObject({ code: 'unknown_position' });
    }
    expect(subjectsOf(await pageAfter('moved', 2))).toEqual([3]);
    expect(await pageAfter('moved', 3)).toMatchObject({ items: [], lastPosition: 3 });
  });
});

describe('the heads of the chains', () => {
  test('are those of the last entries, of the tenants that the caller may read', async () => {
    await add(row('head-a', 1), row('head-a', 2), row('head-b', 1));
    await seal('head-a');
    await seal('head-b');
    const [last] = (await pageAfter('head-a', 1)).items;
    const head = { tenantId: 'head-a', position: 2, hash: last?.seal?.hash };
    const path = '/api/audit/heads';
    const { items: own } = await app.client
      .as({ roles: 'auditor', tenant: 'head-a' })
      .get<Page<AuditHeadRecord>>(path)
      .expect(200);
    expect(own).toEqual([head]);
    await app.client.get(path).expect(403);
    const first = await admin(app)
      .get<Page<AuditHeadRecord>>(`${path}?tenantId=head-a,head-b&limit=1`)
      .expect(200);
    const second = await admin(app)
      .get<Page<AuditHeadRecord>>(
        `${path}?tenantId=head-a,head-b&limit=1&cursor=${first.nextCursor ?? ''}`,
      )
      .expect(200);
    expect(first.items).toEqual([head]);
    expect(second).toMatchObject({
      items: [{ tenantId: 'head-b', position: 1 }],
      nextCursor: null,
    });
  });
});
