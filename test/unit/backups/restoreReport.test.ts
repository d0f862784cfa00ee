import { expect, test } from '@jest/globals';
import { TABLES } from '../../../db/backups/tables.ts';
import type { Permission } from '../../../domain/access/permissions.ts';
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
      current: 'https://h/…',
      restored: 'https://h/…',
    },
    { field: 'secret', current: null, restored: null },
  ]);
});

test('records are shown with the permission of their section and that by which the API shows them', () => {
  const report = {
    errors: [],
    preview: {
      differences: TABLES.map(({ name, section }) => ({
        section,
        table: name,
        key: 'x',
        fields: [],
      })),
    },
  } as unknown as RestoreReport;
  const missing = (...permissions: Permission[]) => {
    const { differences } = redactReport(report, (each) => !permissions.includes(each)).preview;
    const shown = new Set(differences.map(({ table }) => table));
    return TABLES.map(({ name }) => name).filter((name) => !shown.has(name));
  };
  expect(missing()).toEqual([]);
  expect(missing('user:read')).toEqual(['users', 'tokens', 'account_controllers']);
  expect(missing('auth:read')).toEqual(['providers']);
  expect(missing('jobtype:read')).toEqual(['pools', 'job_types', 'job_type_versions']);
  expect(missing('hold:read')).toEqual(['legal_holds']);
  expect(missing('rbac:read')).toEqual(
    TABLES.filter(({ section }) => section === 'access').map(({ name }) => name),
  );
  expect(missing('inventory:read')).toEqual(
    expect.arrayContaining(['sites', 'tags', 'imports', 'import_rows', 'inventory_apply_results']),
  );
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

test.each([
  ['https://hooks.example.net/services/T0/B0/x7Kd', 'https://hooks.example.net/…'],
  ['https://ann:pa55@hooks.example.net?key=x7Kd', 'https://hooks.example.net/…'],
  [`https://ann:${'x7Kd'.repeat(60)}`.slice(0, 200), '********'],
])('a preview shows the origin of a URL only: %s', (url, shown) => {
  const fields = [{ field: 'endpoint_url', current: url, restored: null }];
  const report = {
    errors: [],
    preview: {
      differences: [
        { section: 'webhooks', table: 'webhooks', key: 'whk_1', change: 'deleted', fields },
      ],
    },
  } as unknown as RestoreReport;
  expect(redactReport(report, () => true).preview.differences[0]?.fields).toEqual([
    { field: 'endpoint_url', current: shown, restored: null },
  ]);
});
