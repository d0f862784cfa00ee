import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SessionRecord, UserRecord } from '../../../api/auth/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin, createUser, first, login, type Page, type TestUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const sessionsOf = ({ id }: TestUser) =>
  admin(app).get<Page<SessionRecord>>(`/api/users/${id}/sessions`);

describe('the sessions of a user', () => {
  test('are listed, and one of them ends immediately', async () => {
    const someone = await createUser(app, 'viewer');
    await login(app, someone.username).expect(200);
    const { items } = await sessionsOf(someone).expect(200);
    expect(items).toHaveLength(2);
    expect(items.every(({ current }) => !current)).toBe(true);
    const oldest = items[1]?.id ?? '';
    const path = `/api/users/${someone.id}/sessions/${oldest}`;
    await admin(app).delete(path).expect(204);
    await expectProblem(someone.client.get('/api/jobs'), 401, 'session_invalid');
    await expectProblem(admin(app).delete(path), 404, 'not_found');
    expect((await sessionsOf(someone).expect(200)).items).toHaveLength(1);
    const entries = await admin(app)
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${oldest}`)
      .expect(200);
    expect(first(entries)).toMatchObject({
      action: 'session.revoke',
      after: { userId: someone.id },
    });
  });

  test('all end together; without any, nothing is noted', async () => {
    const someone = await createUser(app, 'viewer');
    await login(app, someone.username).expect(200);
    const path = `/api/users/${someone.id}/sessions`;
    await admin(app).delete(path).expect(204);
    await admin(app).delete(path).expect(204);
    expect((await sessionsOf(someone).expect(200)).items).toEqual([]);
    const entries = await admin(app)
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${someone.id}&action=session.revoke`)
      .expect(200);
    expect(entries.items.map(({ after }) => after)).toEqual([{ ended: 2 }]);
  });

  test('are those of another user for nobody, whatever the path says', async () => {
    const [one, other] = [await createUser(app, 'viewer'), await createUser(app, 'viewer')];
    const theirs = first(await sessionsOf(other).expect(200)).id;
    await expectProblem(
      admin(app).delete(`/api/users/${one.id}/sessions/${theirs}`),
      404,
      'not_found',
    );
    await other.client.get('/api/jobs').expect(200);
  });

  test('need user:read to be seen and user:write to be ended', async () => {
    const someone = await createUser(app, 'viewer');
    const path = `/api/users/${someone.id}/sessions`;
    const auditor = await createUser(app, 'auditor');
    await auditor.client.get(path).expect(200);
    await expectProblem(auditor.client.delete(path), 403, 'permission_denied');
    await expectProblem(someone.client.get(path), 403, 'permission_denied');
  });
});

describe('the list of users', () => {
  test('is in the order of names or of the last login, page by page', async () => {
    const people = [await createUser(app), await createUser(app), await createUser(app)];
    await app.deps.db('users').where({ id: people[0]?.id }).update({ last_login_at: null });
    const walk = async (sort: string): Promise<string[]> => {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const query = new URLSearchParams({ sort, limit: '2', ...(cursor && { cursor }) });
        const page: Page<UserRecord> = await admin(app)
          .get<Page<UserRecord>>(`/api/users?${query.toString()}`)
          .expect(200);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor;
      } while (cursor !== null);
      return found.filter((id) => people.some((each) => each.id === id));
    };
    const [one, two, three] = people.map(({ id }) => id);
    expect(await walk('username')).toEqual([one, two, three]);
    expect(await walk('lastLoginAt')).toEqual([two, three, one]);
    expect(await walk('-lastLoginAt')).toEqual([three, two, one]);
  });

  test('can be that of the members of a group', async () => {
    const [member, other] = [await createUser(app), await createUser(app)];
    const { db } = app.deps;
    await db('users')
      .where({ id: member.id })
      .update({ external_groups: ['net, admins', 'all'] });
    await db('users')
      .where({ id: other.id })
      .update({ external_groups: ['net'] });
    const found = await admin(app)
      .get<Page<UserRecord>>(`/api/users?group=${encodeURIComponent('net, admins')}`)
      .expect(200);
    expect(found.items.map(({ id }) => id)).toEqual([member.id]);
  });
});
