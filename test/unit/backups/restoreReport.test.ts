import { expect, test } from '@jest/globals';
import type { RestoreReport } from '../../../domain/backups/backups.ts';
import { redactReport } from '../../../services/backups/restoreReport.ts';

test('differences show no credentials, not even in the URL of a webhook', () => {
  const difference = {
    section: 'webhooks',
    table: 'webhooks',
    key: 'whk_1',
    change: 'changed',
    fields: [
      { field: 'endpoint_url', current: 'https://h/?token=abc', restored: 'https://u:pw@h/' },
      { field: 'secret', current: null, restored: null },
    ],
  };
  const report = {
    errors: [],
    warnings: [],
    preview: { differences: [difference] },
  } as unknown as RestoreReport;
  expect(redactReport(report, () => true).preview.differences[0]?.fields).toEqual([
    {
      field: 'endpoint_url',
      current: 'https://h/?token=********',
      restored: 'https://u:********@h/',
    },
    { field: 'secret', current: null, restored: null },
  ]);
});
