import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Type } from 'typebox';
import { auditRoutes } from '../../../api/audit/routes.ts';
import { defineList } from '../../../api/http/lists.ts';
import { jobPresenter, logPresenter } from '../../../api/jobs/presenter.ts';
import { defineJobType } from '../../../domain/jobs/jobType.ts';
import type { JobData, JobLogData } from '../../../domain/jobs/records.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { maskCredentials } from '../../../domain/shared/credentials.ts';
import { maskInTurns } from '../../../platform/maskInTurns.ts';
import { createJobTypes } from '../../../services/jobTypes/registry.ts';
import { isSamePayload } from '../../../services/schedules/fields.ts';
import { propertyRuns } from '../../support/effort.ts';

/** How many turns other work of the process gets while `work` runs. */
async function turnsOfOthers(work: () => unknown): Promise<number> {
  let turns = 0;
  let isRunning = true;
  const others = (async () => {
    while (isRunning) {
      await setImmediate();
      turns++;
    }
  })();
  await work();
  const found = turns;
  isRunning = false;
  await others;
  return found;
}

const SECRET = 'hunter2-S3CRET';
const LONG = { text: 'a=b&'.repeat(100_000), password: SECRET };
const LINE: JobLogData = {
  line: 1,
  attempt: 1,
  level: 'info',
  message: 'x=1&'.repeat(2_000),
  data: { text: 'a=b&'.repeat(2_000), password: SECRET },
  at: new Date(),
};
const NOW = new Date();
const reader = systemCaller('tnt', 'reader');

const jobTypes = createJobTypes();
jobTypes.register([
  defineJobType({
    name: 'test.long',
    summary: 'test',
    payload: Type.Object({}),
    lane: 'inline',
    timeoutMs: 1_000,
    run: () => Promise.resolve({}),
  }),
]);

/** A job of another caller. */
const jobWith = (fields: Partial<JobData>) =>
  ({
    id: 'job_1',
    type: 'test.long',
    tenantId: 'tnt',
    siteId: null,
    deviceId: null,
    attempts: 1,
    error: null,
    authority: { actorId: 'alice', grants: [] },
    sourceKind: 'api',
    sourceId: null,
    retryOf: null,
    workflowId: null,
    runId: null,
    cancelRequestedAt: null,
    createdAt: NOW,
    updatedAt: NOW,
    startedAt: null,
    finishedAt: null,
    dataPurgedAt: null,
    payload: {},
    result: null,
    ...fields,
  }) as unknown as JobData;

const entry = {
  id: 'aud_1',
  at: NOW,
  tenantId: 'tnt',
  actorId: 'alice',
  via: 'gateway',
  before: null,
  after: LONG,
  position: null,
  hash: null,
};

function auditRoute(path: string) {
  const auditLog = {
    read: () => Promise.resolve(entry),
    list: () => Promise.resolve({ items: [entry], next: null }),
  };
  const [log, archives] = [auditLog, { newest: () => Promise.resolve(null) }] as unknown as [
    Parameters<typeof auditRoutes>[0],
    Parameters<typeof auditRoutes>[1],
  ];
  const found = auditRoutes(log, archives, undefined as never).find((each) => each.path === path);
  return async () => {
    const request = { caller: reader, query: {}, params: { id: 'aud_1' } };
    return (await found?.handle(request as never))?.body;
  };
}

const LIST = defineList({
  name: 'test',
  id: 'job',
  item: Type.Object({}),
  title: 'TestList',
  fields: {},
});

const { record, summary } = jobPresenter(jobTypes);
const schedule = { jobType: 'test.long', payload: LONG };

test.each<[string, () => unknown]>([
  ['the payload of a job', () => record({ job: jobWith({ payload: LONG }), logs: [] }, reader)],
  ['the result of a job', () => record({ job: jobWith({ result: LONG }), logs: [] }, reader)],
  [
    'the log of a job',
    () => record({ job: jobWith({}), logs: Array.from({ length: 50 }, () => LINE) }, reader),
  ],
  ['a line of a log', () => logPresenter(jobWith({}), reader)({ ...LINE, data: LONG })],
  [
    'the errors of listed jobs',
    () => {
      const job = jobWith({ error: { code: 'failed', message: 'a=b&'.repeat(1_000) } });
      const items = Array.from({ length: 100 }, () => job);
      return LIST.page(
        {},
        () => Promise.resolve({ items, next: null }),
        (each) => summary(each, reader),
      );
    },
  ],
  ['an audit entry', auditRoute('/api/audit/{id}')],
  ['listed audit entries', auditRoute('/api/audit')],
  [
    'the payload of a schedule, when its change is compared',
    () => isSamePayload(jobTypes, schedule as never, { text: 'other' }, { isAuthor: false }),
  ],
])('other work runs while %s is masked for a reader', async (_what, present) => {
  let view: unknown;
  const turns = await turnsOfOthers(async () => {
    view = await present();
  });
  expect(turns).toBeGreaterThanOrEqual(5);
  expect(JSON.stringify(view)).not.toContain(SECRET);
});

test('in turns, the same is masked', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), fc.string(), async (value, text) => {
      const all = {
        value,
        text,
        form: `password=${text}`,
        token: value,
        json: `{"pin":"${text}"}`,
      };
      expect(await maskInTurns(all)).toEqual(maskCredentials(all));
    }),
    { numRuns: propertyRuns(100) },
  );
  expect(await maskInTurns(LONG)).toEqual({ ...LONG, password: '********' });
});
