import { createHmac } from 'node:crypto';
import type { RunQuery } from '../../db/backups/catalog.ts';
import { findConflicts } from '../../db/backups/conflicts.ts';
import {
  countDifferences,
  sampleDifferences,
  type DifferenceSample,
} from '../../db/backups/differenceReport.ts';
import type { RestoreConflict } from '../../db/backups/restoreConflict.ts';
import { findPlanned, type RestorePlan } from '../../db/backups/restorePlan.ts';
import { countNotEnabled } from '../../db/backups/restoredTables.ts';
import { countInterruptedJobs, findLockoutRisks } from '../../db/backups/restoreRisks.ts';
import { TABLES } from '../../db/backups/tables.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import {
  MAX_DIFFERENCES,
  MAX_FINDINGS,
  isSection,
  SECTION_INFO,
  type RestoreDifference,
  type RestoreFinding,
  type RestoreReport,
  type Section,
  type TableCounts,
} from '../../domain/backups/backups.ts';
import { maskText } from '../../domain/shared/credentials.ts';
import { counted } from '../../domain/shared/counted.ts';
import { MASK } from '../../domain/shared/mask.ts';
import { originOf } from '../../domain/webhooks/webhooks.ts';
import type { ArchiveHeader } from '../../platform/archive/index.ts';
import { nounOf } from '../../domain/shared/nouns.ts';

const CONFLICT_MESSAGES: Readonly<
  Record<RestoreConflict['code'], (conflict: RestoreConflict) => string>
> = {
  still_referenced: ({ table, key, other }) =>
    `${nounOf(table)} ${key} refers to ${other}, which the restore would delete; ` +
    'restore its section too, or change it',
  missing_reference: ({ table, key, other }) =>
    `${nounOf(table)} ${key} refers to ${other}, which is neither in the database nor in the archive`,
  legal_hold: ({ table, key }) =>
    `a legal hold keeps ${nounOf(table)} ${key}, which the restore would change or delete`,
  owned_by_other_tenant: ({ table, key }) =>
    `${nounOf(table)} ${key} belongs to another tenant now`,
  not_shared: ({ table, key, other }) =>
    `${nounOf(table)} ${key} refers to ${other} of another tenant, which is not shared with this one now`,
  not_assigned: ({ table, key }) =>
    `${nounOf(table)} ${key} takes space in a prefix of the platform that the tenant does not have now; ` +
    'only the platform assigns it',
  already_assigned: ({ table, key, other }) =>
    `${nounOf(table)} ${key} takes space that is assigned to another tenant now: ${other}`,
};

const finding = (
  code: string,
  message: string,
  details: Partial<RestoreFinding> = {},
): RestoreFinding => ({ code, message, section: null, table: null, key: null, ...details });

export type RestoreEvaluation = { report: RestoreReport; planHash: string };

type Requester = {
  actorId: string;
  /** The actor accepts lockout risks: they become warnings instead of errors. */
  confirmed: boolean;
  /** Where the owner of the restore may write in the inventory. */
  writable: Scope;
};

/**
 * Reports what a restore would do. Requires `findDifferences`. The plan hash identifies the
 * changes. It is keyed with a secret of the archive, so that guesses about hidden values cannot be
 * verified with it.
 */
export async function buildRestoreReport(
  query: RunQuery,
  plan: RestorePlan,
  header: ArchiveHeader,
  { actorId, confirmed, writable }: Requester,
): Promise<RestoreEvaluation> {
  const { tables, fingerprint } = await countTables(query, plan);
  const changes = new Map(tables.map((counts) => [counts.table, counts]));
  const conflicts = (await findConflicts(query, plan, changes, writable))
    .slice(0, MAX_FINDINGS)
    .map((conflict) => toFinding(conflict, plan.scope.tenantId ?? PLATFORM));
  const risks = await lockoutFindings(query, plan, actorId);
  const errors = [...conflicts, ...(confirmed ? [] : risks)];
  const warnings = [...(confirmed ? risks : []), ...(await findWarnings(query, plan, tables))];
  const planHash = createHmac('sha256', header.key.sealed)
    .update(`${header.backupId}\n${plan.sections.join(',')}\n${fingerprint}`)
    .digest('hex');
  const preview: RestoreReport['preview'] = {
    backupId: header.backupId,
    schemaVersion: header.schemaVersion,
    createdAt: header.createdAt,
    sections: plan.sections,
    includes: includedSections(plan),
    counts: totalCounts(tables),
    tables,
    differences: await collectDifferences(query, plan, tables),
  };
  return {
    planHash,
    report: { valid: errors.length === 0, errors, warnings, planHash, preview },
  };
}

async function countTables(
  query: RunQuery,
  plan: RestorePlan,
): Promise<{ tables: TableCounts[]; fingerprint: string }> {
  const { counts, fingerprint } = await countDifferences(query, plan);
  const countsOf = new Map(counts.map(({ name, ...rest }) => [name, rest]));
  const tables = plan.tables.flatMap(({ table, role }): TableCounts[] => {
    const found = countsOf.get(table.name);
    if (!found) return [];
    const includedByReference = role === 'referenced';
    const unchanged = includedByReference
      ? 0
      : found.inArchive - found.created - found.changed - found.purged;
    const { section, name } = table;
    return [{ section, table: name, ...found, unchanged, includedByReference }];
  });
  return { tables, fingerprint };
}

function totalCounts(tables: readonly TableCounts[]): RestoreReport['preview']['counts'] {
  const sum = (count: 'created' | 'changed' | 'deleted' | 'unchanged') =>
    tables.reduce((total, table) => total + table[count], 0);
  return {
    created: sum('created'),
    changed: sum('changed'),
    deleted: sum('deleted'),
    unchanged: sum('unchanged'),
  };
}

/** The sections of tables that take part only because others refer to them. */
function includedSections(plan: RestorePlan): Section[] {
  const referenced = plan.tables.filter(({ role }) => role === 'referenced');
  const sections = new Set(referenced.map(({ table }) => table.section));
  return [...sections].filter((section) => !plan.sections.includes(section));
}

const toFinding = (conflict: RestoreConflict, ownTenantId: string): RestoreFinding =>
  finding(conflict.code, CONFLICT_MESSAGES[conflict.code](conflict), {
    section: TABLES.find(({ name }) => name === conflict.table)?.section ?? null,
    table: conflict.table,
    key: conflict.key,
    tenantId: conflict.tenantId ?? ownTenantId,
  });

async function lockoutFindings(
  query: RunQuery,
  plan: RestorePlan,
  actorId: string,
): Promise<RestoreFinding[]> {
  const { losesAdministrators, losesOwnAccount } = await findLockoutRisks(query, plan, actorId);
  const found: RestoreFinding[] = [];
  if (losesAdministrators)
    found.push(
      finding(
        'no_administrator',
        'No local account would administer the platform after the restore',
        {
          section: 'access',
        },
      ),
    );
  if (losesOwnAccount)
    found.push(
      finding('own_account', 'Your own account would be deleted or disabled', {
        section: 'access',
      }),
    );
  return found;
}

const recordsOf = (table: string, count: number): string =>
  `${counted(count, 'record')} of ${nounOf(table, 2)}`;

async function findWarnings(
  query: RunQuery,
  plan: RestorePlan,
  tables: readonly TableCounts[],
): Promise<RestoreFinding[]> {
  const found = tables
    .filter(({ deleted }) => deleted > 0)
    .map(({ section, table, deleted }) =>
      finding(
        'records_deleted',
        `${recordsOf(table, deleted)} not in the backup would be deleted`,
        { section, table },
      ),
    );
  for (const { section, table, purged = 0 } of tables)
    if (purged > 0)
      found.push(
        finding(
          'purged_not_restored',
          `${recordsOf(table, purged)} purged by retention would not be restored`,
          { section, table },
        ),
      );
  found.push(...(await accessWarnings(query, plan, tables)));
  const interrupted = await countInterruptedJobs(query, plan);
  if (interrupted > 0)
    found.push(
      finding(
        'jobs_not_run_again',
        `${counted(interrupted, 'job')} still running would be restored as failed and not run again`,
        { section: 'jobs', table: 'jobs' },
      ),
    );
  return found;
}

const DISABLED = 'would be disabled although the backup has them enabled';
const NOT_ENABLED: Readonly<Record<string, string>> = {
  providers: `${DISABLED}: they are disabled or missing now, or have another configuration`,
  users: `${DISABLED}: they are disabled or missing now`,
  tokens: `${DISABLED}: they are missing now`,
  webhooks: `${DISABLED}: they are disabled or deleted now, or have another URL`,
  schedules: 'would be paused although the backup has them active: they are paused now',
  secrets: 'would have fewer pools than in the backup: they have fewer or are missing now',
};

/** What users get rights from again, and what stays disabled: nobody regains access unnoticed. */
async function accessWarnings(
  query: RunQuery,
  plan: RestorePlan,
  tables: readonly TableCounts[],
): Promise<RestoreFinding[]> {
  const at = (table: string) => ({
    section: findPlanned(plan, table)?.table.section ?? ('access' as const),
    table,
  });
  const notEnabled = await countNotEnabled(query, plan);
  const reinstated = tables.filter(
    ({ table, created, changed }) => ['roles', 'grants'].includes(table) && created + changed > 0,
  );
  return [
    ...notEnabled.map(({ table, rows }) =>
      finding('not_enabled', `${recordsOf(table, rows)} ${NOT_ENABLED[table]}`, at(table)),
    ),
    ...reinstated.map(({ table, created, changed }) =>
      finding(
        'access_reinstated',
        `${recordsOf(table, created + changed)} would grant the same as when the backup was made`,
        at(table),
      ),
    ),
  ];
}

/** The first differences of each section, at most 100. */
async function collectDifferences(
  query: RunQuery,
  plan: RestorePlan,
  counts: readonly TableCounts[],
): Promise<RestoreDifference[]> {
  const found: RestoreDifference[] = [];
  for (const planned of plan.tables) {
    const { name, section } = planned.table;
    const count = counts.find((each) => each.table === name);
    const remaining = MAX_DIFFERENCES - found.filter((each) => each.section === section).length;
    if (remaining <= 0 || !count || count.created + count.changed + count.deleted === 0) continue;
    for (const sample of await sampleDifferences(query, plan, planned, remaining))
      found.push(toDifference(section, name, sample));
  }
  return found;
}

/** A difference with the columns that differ; hidden columns are named without values. */
function toDifference(
  section: Section,
  table: string,
  { key, change, restored, current, hiddenDiffer }: DifferenceSample,
): RestoreDifference {
  const fields = Object.keys(restored).map((field) => ({
    field,
    current: change === 'created' ? null : (current[field] ?? null),
    restored: change === 'deleted' ? null : (restored[field] ?? null),
  }));
  const hidden =
    change === 'changed'
      ? (hiddenDiffer ?? []).map((field) => ({ field, current: null, restored: null }))
      : [];
  return {
    section,
    table,
    key,
    change,
    fields: [...fields.filter((field) => field.current !== field.restored), ...hidden],
  };
}

/** Columns with URLs whose path and query may be credentials: as in events and the audit log, their origin is shown. */
const URL_COLUMNS: ReadonlySet<string> = new Set(['endpoint_url']);

/** Values are cut: without the end of its authority, the origin of a URL is not known. */
const shownUrl = (url: string): string =>
  URL.canParse(url) && /^[a-z]+:\/\/[^/?#]*[/?#]/.test(url) ? `${originOf(url)}/…` : MASK;

/** Masks what resembles a credential. */
function maskValues({ field, current, restored }: RestoreDifference['fields'][number]) {
  const show = URL_COLUMNS.has(field) ? shownUrl : maskText;
  return {
    field,
    current: current === null ? null : show(current),
    restored: restored === null ? null : show(restored),
  };
}

/** Whether a caller may read at a tenant; without one, at that of the backup. */
export type MayRead = (permission: Permission, tenantId?: string) => boolean;

/**
 * A report as a caller may see it: without the differences of sections and tables that the caller may not read,
 * without the keys of records that the caller may not read, and with masked credentials.
 */
export function redactReport(report: RestoreReport, mayRead: MayRead): RestoreReport {
  const canShow = (section: Section, table: string | null, tenantId?: string) => {
    // A report of another version may have a section that this one does not know, nor who may read it.
    if (!isSection(section)) return false;
    return [
      SECTION_INFO[section].readPermission,
      TABLES.find(({ name }) => name === table)?.readPermission ?? null,
    ].every((permission) => permission === null || mayRead(permission, tenantId));
  };
  // Earlier versions did not store whose record a finding names: it can be that of any tenant.
  const redactFinding = ({ tenantId = PLATFORM, ...each }: RestoreFinding): RestoreFinding => {
    if (each.key === null || (each.section !== null && canShow(each.section, each.table, tenantId)))
      return each;
    const owner = each.section === null ? 'A record' : `A record of ${each.section}`;
    return { ...each, key: null, message: `${owner} that you may not read prevents the restore` };
  };
  return {
    ...report,
    errors: report.errors.map(redactFinding),
    preview: {
      ...report.preview,
      differences: report.preview.differences
        .filter(({ section, table }) => canShow(section, table))
        .map((difference) => ({ ...difference, fields: difference.fields.map(maskValues) })),
    },
  };
}
