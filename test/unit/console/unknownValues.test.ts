import { expect, test } from '@jest/globals';
import { keptText } from '../../../ui/areas/backups/backupText.ts';
import { waitingText } from '../../../ui/areas/jobs/jobText.ts';
import { overlapLabel, reasonText } from '../../../ui/areas/schedules/scheduleText.ts';
import { matchReason } from '../../../ui/areas/search/results.ts';
import { stateOf } from '../../../ui/parts/approvals/states.ts';

/** During an upgrade, an open tab gets answers of a server that knows more than it does. */
const NEWER = 'newer_value' as never;

test('values that only a newer server knows are shown as they are', () => {
  expect(waitingText({ pool: 'lab', runners: 1, reason: NEWER })).toMatch(/lab: newer_value/);
  expect(overlapLabel(NEWER)).toBe('Newer value');
  expect(reasonText(NEWER)).toBe('Reason: newer_value.');
  expect(keptText([NEWER, 'daily'])).toBe('newer_value, last of its day');
  expect(stateOf({ status: NEWER, execution: 'none' })).toEqual({
    status: 'newer_value',
    label: 'Newer value',
  });
  expect(stateOf({ status: 'approved', execution: NEWER }).label).toBe('Newer value');
  const found = { label: 'a', description: '', match: NEWER };
  expect(matchReason(found, 'x')).toBe('another field newer_value');
});
