import { rename, rm, writeFile } from 'node:fs/promises';
import { afterEach, expect, test } from '@jest/globals';
import type { Announcement } from '../../../domain/runners/protocol.ts';
import { createLog, type Log } from '../../../platform/log.ts';
import type { Catalog } from '../../../runner/catalog.ts';
import { createAnnouncer } from '../../../runner/protocol/announcer.ts';
import { RunnerApiError, type RunnerApi } from '../../../runner/protocol/api.ts';
import { createTemporalProbe } from '../../../runner/temporalProbe.ts';
import { eventually } from '../../support/eventually.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';
import { createCatalog } from '../../../runner/catalog.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const log = createLog('silent', false);

/** An announcer of a folder with types, and an API that answers as a test wants. */
async function startAnnouncer(
  refuses: (announcement: Announcement) => boolean,
  obstacle: () => string | undefined = () => undefined,
) {
  const types = await createDeclaredTypes();
  closing.push(() => types.remove());
  const announcements: string[][] = [];
  let reports = 0;
  const sent: unknown[] = [];
  let reachesTemporal = true;
  let failure: RunnerApiError | undefined;
  const api = {
    announce(announcement: Announcement) {
      announcements.push(announcement.types.map(({ definition }) => definition.name));
      if (refuses(announcement))
        return Promise.reject(new RunnerApiError(413, 'body_too_large', 'Too large'));
      return Promise.resolve({ taskQueue: 'q', namespace: 'n', everySeconds: 0.01, types: [] });
    },
    alive(report: object) {
      sent.push(report);
      reports++;
      return failure ? Promise.reject(failure) : Promise.resolve({ types: [] });
    },
  } as unknown as RunnerApi;
  const catalog = catalogOf(types, obstacle);
  const announcer = createAnnouncer({
    ...{ api, catalog, log },
    ...{ runnerId: 'r', pool: 'default', slots: 1 },
    reachesTemporal: () => Promise.resolve(reachesTemporal),
  });
  const failAlive = (error: RunnerApiError) => void (failure = error);
  const loseTemporal = () => void (reachesTemporal = false);
  return { types, announcer, announcements, sent, reports: () => reports, failAlive, loseTemporal };
}

const catalogOf = (types: DeclaredTypes, obstacle: () => string | undefined): Catalog =>
  createCatalog({
    folders: [types.folder],
    pools: ['default'],
    secretsFolder: undefined,
    wrapper: [],
    obstacle: () => Promise.resolve(obstacle()),
    log,
  });

test('a runner whose announcement is refused still reports that it is alive', async () => {
  const { types, announcer, announcements, reports } = await startAnnouncer(
    (announcement) => announcement.types.length > 1,
  );
  await types.declare('true');
  await announcer.announce();
  const ended = new AbortController();
  const reporting = announcer.keepReporting(ended.signal);
  await eventually(reports, (count) => count > 0);
  const before = reports();
  await types.declare('true');
  await eventually(
    () => announcements.filter((names) => names.length === 2).length,
    (count) => count > 1,
  );
  await eventually(reports, (count) => count > before + 1);
  ended.abort();
  await reporting;
});

test('a runner that has lost Temporal says so in each report', async () => {
  const { announcer, sent, loseTemporal } = await startAnnouncer(() => false);
  await announcer.announce();
  const ended = new AbortController();
  const reporting = announcer.keepReporting(ended.signal);
  await eventually(
    () => sent,
    ({ length }) => length > 0,
  );
  expect(sent[0]).toEqual({ runnerId: 'r', pool: 'default' });
  loseTemporal();
  await eventually(
    () => sent.at(-1),
    (last) => (last as { reachesTemporal?: boolean }).reachesTemporal === false,
  );
  ended.abort();
  await reporting;
});

test('the log says once that Temporal is lost, and once that it is back', async () => {
  const lines: string[] = [];
  const probeLog = {
    error: (_: object, text: string) => lines.push(text),
    info: (text: string) => lines.push(text),
  };
  const answers = [true, false, true, false, false, false, true, true];
  const check = () => (answers.shift() ? Promise.resolve() : Promise.reject(new Error('away')));
  const probe = createTemporalProbe({ check, log: probeLog as unknown as Log });
  const found: boolean[] = [];
  while (answers.length > 0) found.push(await probe());
  // One failure between two successes is a restart.
  expect(found).toEqual([true, true, true, true, false, false, true, true]);
  expect(lines).toEqual([
    'the runner takes no jobs: it does not reach Temporal',
    'the runner reaches Temporal again',
  ]);
  const never = createTemporalProbe({
    check: () => Promise.reject(new Error('away')),
    log: probeLog as unknown as Log,
  });
  expect(await never()).toBe(false);
});

test('a runner that is not known announces itself again, and not after a 404 of a proxy', async () => {
  const { announcer, announcements, reports, failAlive } = await startAnnouncer(() => false);
  await announcer.announce();
  const ended = new AbortController();
  const reporting = announcer.keepReporting(ended.signal);
  failAlive(new RunnerApiError(404, 'http_404', 'A proxy answers 404', { isOfProxy: true }));
  const before = reports();
  await eventually(reports, (count) => count > before + 2);
  expect(announcements).toHaveLength(1);
  failAlive(new RunnerApiError(404, 'unknown_runner', 'Unknown'));
  await eventually(
    () => announcements.length,
    (count) => count > 1,
  );
  ended.abort();
  await reporting;
});

test('a runner that cannot run commands announces no types until it can again', async () => {
  let obstacle: string | undefined;
  const { types, announcer, announcements } = await startAnnouncer(
    () => false,
    () => obstacle,
  );
  await types.declare('true');
  await announcer.announce();
  const ended = new AbortController();
  const reporting = announcer.keepReporting(ended.signal);
  const last = () => announcements.at(-1)?.length;
  obstacle = 'ENOSPC';
  await eventually(last, (count) => count === 0);
  obstacle = undefined;
  await eventually(last, (count) => count === 1);
  ended.abort();
  await reporting;
});

test('a runner whose types cannot be read for a moment is alive with those that it had', async () => {
  const { types, announcer, announcements, reports } = await startAnnouncer(() => false);
  await types.declare('true');
  await announcer.announce();
  const away = `${types.folder}-away`;
  await rename(types.folder, away);
  await writeFile(types.folder, 'no folder');
  await announcer.announce();
  const ended = new AbortController();
  const reporting = announcer.keepReporting(ended.signal);
  await eventually(reports, (count) => count > 1);
  ended.abort();
  await reporting;
  await rm(types.folder);
  await rename(away, types.folder);
  expect(announcements.map(({ length }) => length)).toEqual([1, 1]);
});

test('a declaration that the API would refuse with the whole announcement is not read', async () => {
  const { types } = await startAnnouncer(() => false);
  await expect(types.declare('true', { summary: 'half a pair: \ud800' })).rejects.toThrow(
    'summary must not contain half of a surrogate pair',
  );
});
