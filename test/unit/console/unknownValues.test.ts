import { expect, test } from '@jest/globals';
import { failedTitle, keptText, purposeText } from '../../../ui/areas/backups/backupText.ts';
import { effectOf } from '../../../ui/areas/backups/differences.ts';
import { waitingText } from '../../../ui/areas/jobs/jobText.ts';
import { concurrencyText, originText, whoMayRun } from '../../../ui/areas/jobTypes/typeText.ts';
import { overlapLabel, reasonText } from '../../../ui/areas/schedules/scheduleText.ts';
import { matchReason } from '../../../ui/areas/search/results.ts';
import { historyText } from '../../../ui/areas/webhooks/webhookText.ts';
import { decisionOf, stateOf } from '../../../ui/parts/approvals/states.ts';
import { sidesOf } from '../../../ui/parts/diff/change.ts';
import { changeLine, driftsOf, groupEffects, type Effect } from '../../../ui/parts/plan/effects.ts';
import { targetLabel } from '../../../ui/parts/records/target.ts';

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
  expect(purposeText(NEWER)).toBe('Newer value');
  expect(failedTitle(NEWER)).toBe('Newer value: failed');
  expect(originText(NEWER)).toBe('newer_value');
  expect(whoMayRun({ createdOnlyBy: null, access: NEWER })).toBe('newer_value');
  expect(concurrencyText({ limit: 2, per: NEWER, whenFull: NEWER })).toBe(
    '2 of newer_value; further ones newer_value',
  );
  expect(decisionOf(NEWER).text).toBe('newer_value');
  expect(targetLabel(NEWER)).toBe('Newer value');
  const entry = { outcome: 'done', before: null, after: { disabledReason: NEWER } };
  expect(historyText({ action: 'webhook.disable', ...entry })).toBe('Disabled: newer_value');
});

test('actions that only a newer server knows are shown as they are, with both sides', () => {
  const effect: Effect = {
    action: NEWER,
    resource: 'prefixes',
    id: 'pfx_1',
    label: '10.0.0.0/8',
    reason: 'requested',
    version: 1,
    changes: [],
  };
  const plan = { effects: [effect], hiddenEffects: null, jobType: 'inventory.apply' };
  expect(changeLine(plan)).toBe('Newer_value prefix 10.0.0.0/8');
  expect(groupEffects([effect])[0]?.counts).toBe('newer_value 1');
  const drifts = driftsOf({
    effects: [
      { approved: null, now: effect },
      { approved: effect, now: { ...effect, action: 'delete' } },
    ],
  });
  expect(drifts.map(({ text }) => text)).toEqual([
    'would be newer_value too',
    'would be deleted, not newer_value',
  ]);
  expect(sidesOf(NEWER)).toEqual({ action: 'update', headers: ['Before', 'After'] });
  const difference = { section: 'inventory', table: 'sites', key: 'sit_1', fields: [] };
  expect(effectOf({ ...difference, change: NEWER }, undefined, false).action).toBe('update');
});
