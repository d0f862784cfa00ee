import { expect, test } from '@jest/globals';
import { createNotifications } from '../../../db/core/notifications.ts';
import { createLog } from '../../../platform/log.ts';

test('changes of this process reach its listeners before PostgreSQL notifies them', () => {
  const changes = createNotifications('postgres://unused', createLog('silent', false));
  const heard: string[] = [];
  changes.on('job:1', () => heard.push('1'));
  const unsubscribe = changes.on('job:2', () => heard.push('2'));
  changes.announce(['job:1', 'job:2', 'job:3']);
  expect(heard).toEqual(['1', '2']);
  unsubscribe();
  changes.announce(['job:2']);
  expect(heard).toEqual(['1', '2']);
});
