import { expect, test } from '@jest/globals';
import {
  permissionsToRestore,
  type RestoreReport,
  type Section,
} from '../../../domain/backups/backups.ts';
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

test('a report with a section of another version shows nothing of it, and the rest', () => {
  const difference = { table: 'jobs', key: 'k', change: 'deleted', fields: [] };
  const report = {
    errors: [{ section: 'later', table: 'later_rows', key: 'lat_1', message: 'lat_1 refers' }],
    preview: {
      differences: [
        { ...difference, section: 'later' },
        { ...difference, section: 'jobs' },
      ],
    },
  } as unknown as RestoreReport;
  const { errors, preview } = redactReport(report, () => true);
  expect(errors).toMatchObject([{ key: null }]);
  expect(preview.differences.map(({ section }) => section)).toEqual(['jobs']);
  expect(permissionsToRestore(['later' as Section, 'access'])).toContain('rbac:write');
});
