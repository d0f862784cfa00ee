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

test('a finding names records of tenants only that its reader may read', () => {
  const finding = (tenantId?: string) => ({
    code: 'still_referenced',
    section: 'inventory',
    table: 'cables',
    key: 'cab_1',
    message: 'cables cab_1 refers to int_1',
    ...(tenantId !== undefined && { tenantId }),
  });
  const report = {
    errors: [finding('acme'), finding('other'), finding()],
    preview: { differences: [] },
  } as unknown as RestoreReport;
  const keysFor = (...tenants: string[]) =>
    redactReport(report, (_, tenantId = 'acme') => tenants.includes(tenantId)).errors.map(
      ({ key }) => key,
    );
  expect(keysFor('acme')).toEqual(['cab_1', null, null]);
  expect(keysFor('acme', 'other', 'platform')).toEqual(['cab_1', 'cab_1', 'cab_1']);
});
