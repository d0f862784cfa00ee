import { expect, test } from '@jest/globals';
import { Job } from '../../../db/models/Job.ts';
import { LOG_FULL } from '../../../domain/jobs/logLines.ts';
import { createLog } from '../../../platform/log.ts';
import { createRunLog } from '../../../services/jobs/runLog.ts';

test('the last line of a full log says so, and only the engine adds lines to it', async () => {
  await using runLog = createRunLog({
    writeUnaudited: () => Promise.reject(new Error('nothing is written here')),
    log: createLog('silent', false),
    job: Job.fromDatabaseJson({ id: 'job_full', attempts: 1, log_count: 9_997, run_id: 'run' }),
  });
  for (const line of ['one', 'two', 'three', 'four']) runLog.log('info', line);
  runLog.logSystem('info', 'engine');
  expect(runLog.drain().lines.map(({ level, message }) => [level, message])).toEqual([
    ['info', 'one'],
    ['info', 'two'],
    ['warn', LOG_FULL],
    ['info', 'engine'],
  ]);
  runLog.log('info', 'later');
  expect(runLog.drain().lines).toEqual([]);
});
