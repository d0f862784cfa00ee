import { createHmac } from 'node:crypto';
import { findConflicts, type Conflict } from '../../db/backups/conflicts.ts';
import {
  countDifferences,
  loaded,
  sampleDifferences,
  type RestorePlan,
  type Sample,
} from '../../db/backups/differences.ts';
import { TABLES } from '../../db/backups/tables.ts';
import { quoted, type Ask } from '../../db/backups/catalog.ts';
import {
  ABOUT_SECTIONS,
  MAX_DIFFERENCES,
  MAX_FINDINGS,
  type RestoreDifference,
  type RestoreFinding,
  type RestoreReport,
  type Section,
  type TableCounts,
} from '../../domain/backups.ts';
import type { ArchiveHeader } from '../../platform/archive/index.ts';
import type { Permission } from '../../domain/access/permissions.ts';

const CONFLICTS: Readonly<Record<Conflict['code'], (conflict: Conflict) => string>> = {
  still_referred: ({ table, key, other }) =>
    `${table} ${key} refers to ${other}, which the restore would delete; restore its section too, or change it`,
  missing_reference: ({ table, key, other }) =>
    `${table} ${key} refers to ${other}, which is neither here nor in the archive`,
  elsewhere: ({ table, key }) => `${table} ${key} belongs to another tenant now`,
};

const finding = (
  code: string,
  message: string,
  more: Partial<RestoreFinding> = {},
): RestoreFinding => ({ code, message, section: null, table: null, key: null, ...more });

/** The columns in which a record differs; values of hidden ones are left out. */
function difference(
  section: Section,
  table: string,
  { key, change, then, now, hiddenDiffer }: Sample,
): RestoreDifference {
  const fields = Object.keys(then).map((field) => ({
    field,
    now: change === 'created' ? null : (now[field] ?? null),
    then: change === 'deleted' ? null : (then[field] ?? null),
  }));
  const hidden =
    change === 'changed'
      ? (hiddenDiffer ?? []).map((field) => ({ field, now: null, then: null }))
      : [];
  return {
    section,
    table,
    key,
    change,
    fields: [...fields.filter((field) => field.now !== field.then), ...hidden],
  };
}

async function differencesOf(
  ask: Ask,
  plan: RestorePlan,
  counts: readonly TableCounts[],
): Promise<RestoreDifference[]> {
  const found: RestoreDifference[] = [];
  for (const planned of plan.tables) {
    const { name, section } = planned.table;
    const count = counts.find((each) => each.table === name);
    const room = MAX_DIFFERENCES - found.filter((each) => each.section === section).length;
    if (room <= 0 || !count || count.created + count.changed + count.deleted === 0) continue;
    for (const sample of await sampleDifferences(ask, plan, planned, room))
      found.push(difference(section, name, sample));
  }
  return found;
}

const ADMINISTRATES = (users: string, grants: string) =>
  `EXISTS (SELECT FROM ${users} AS u JOIN ${grants} AS g ON g.user_id = u.id WHERE u.enabled AND g.level = 'platform' AND g.role_id = 'platform-admin')`;

/** What a restore of `access` must not do by accident. */
async function lockedOut(ask: Ask, plan: RestorePlan, actorId: string): Promise<RestoreFinding[]> {
  const users = plan.tables.find(({ table, part }) => table.name === 'users' && part === 'state');
  if (!users) return [];
  const then = loaded(plan.schema, users.table);
  const [state] = await ask<{ was: boolean; willBe: boolean; gone: boolean }>(
    `SELECT ${ADMINISTRATES('public.users', 'public.grants')} AS was, ${ADMINISTRATES(then, `${quoted(plan.schema)}.grants`)} AS "willBe",
       EXISTS (SELECT FROM public.users WHERE id = $1) AND NOT EXISTS (SELECT FROM ${then} WHERE id = $2 AND enabled) AS gone`,
    [actorId, actorId],
  );
  return [
    ...(state?.was && !state.willBe
      ? [
          finding('no_administrator', 'No local account would administer the platform any more', {
            section: 'access',
          }),
        ]
      : []),
    ...(state?.gone
      ? [
          finding('own_account', 'Your own account would be gone or disabled', {
            section: 'access',
          }),
        ]
      : []),
  ];
}

async function warningsOf(
  ask: Ask,
  plan: RestorePlan,
  counts: readonly TableCounts[],
): Promise<RestoreFinding[]> {
  const lost = counts
    .filter(({ deleted }) => deleted > 0)
    .map(({ section, table, deleted }) =>
      finding(
        'would_be_lost',
        `${deleted} records of ${table} that are not in the backup would be deleted`,
        { section, table },
      ),
    );
  const jobs = plan.tables.find(({ table }) => table.name === 'jobs');
  const [open] = jobs
    ? await ask<{ open: number }>(
        `SELECT count(*) AS open FROM ${loaded(plan.schema, jobs.table)} AS s WHERE status IN ('queued', 'running') AND NOT EXISTS (SELECT FROM public.jobs AS l WHERE l.id = s.id)`,
      )
    : [];
  return open && open.open > 0
    ? [
        ...lost,
        finding(
          'jobs_not_run_again',
          `${open.open} jobs that had not ended would come back as failed, and are not run again`,
          { section: 'jobs', table: 'jobs' },
        ),
      ]
    : lost;
}

const sectionOf = (name: string): Section | null =>
  TABLES.find((table) => table.name === name)?.section ?? null;

export type Look = { report: RestoreReport; planHash: string };

/**
 * Reports what a restore would do. Differences must have been found. `confirmed` turns what could lock somebody out into a
 * warning. The hash is keyed by the archive: what is hidden shall not be tried out with it.
 */
export async function reportOn(
  ask: Ask,
  plan: RestorePlan,
  header: ArchiveHeader,
  { actorId, confirmed }: { actorId: string; confirmed: boolean },
): Promise<Look> {
  const { counts: raw, fingerprint } = await countDifferences(ask, plan);
  const tables = plan.tables.map(({ table, part }, at): TableCounts => {
    const { inArchive = 0, created = 0, changed = 0, deleted = 0 } = raw[at] ?? {};
    return {
      section: table.section,
      table: table.name,
      inArchive,
      created,
      changed,
      deleted,
      unchanged: part === 'referred' ? 0 : inArchive - created - changed,
      broughtAlong: part === 'referred',
    };
  });
  const conflicts = (await findConflicts(ask, plan))
    .slice(0, MAX_FINDINGS)
    .map((conflict) =>
      finding(conflict.code, CONFLICTS[conflict.code](conflict), {
        section: sectionOf(conflict.table),
        table: conflict.table,
        key: conflict.key,
      }),
    );
  const risks = await lockedOut(ask, plan, actorId);
  const errors = [...conflicts, ...(confirmed ? [] : risks)];
  const warnings = [...(confirmed ? risks : []), ...(await warningsOf(ask, plan, tables))];
  const sum = (of: 'created' | 'changed' | 'deleted' | 'unchanged') =>
    tables.reduce((total, table) => total + table[of], 0);
  const includes = [
    ...new Set(
      plan.tables.filter(({ part }) => part === 'referred').map(({ table }) => table.section),
    ),
  ].filter((section) => !plan.sections.includes(section));
  const planHash = createHmac('sha256', header.key.sealed)
    .update(`${header.backupId}\n${plan.sections.join(',')}\n${fingerprint}`)
    .digest('hex');
  return {
    planHash,
    report: {
      valid: errors.length === 0,
      errors,
      warnings,
      planHash,
      preview: {
        backupId: header.backupId,
        schemaVersion: header.schemaVersion,
        createdAt: header.createdAt,
        sections: plan.sections,
        includes,
        counts: {
          created: sum('created'),
          changed: sum('changed'),
          deleted: sum('deleted'),
          unchanged: sum('unchanged'),
        },
        tables,
        differences: await differencesOf(ask, plan, tables),
      },
    },
  };
}

/** A report as somebody may see it: records of a section only with the right to read them. */
export function shownTo(
  report: RestoreReport,
  mayRead: (permission: Permission) => boolean,
): RestoreReport {
  const shown = (section: Section | null) => {
    const permission = section === null ? null : ABOUT_SECTIONS[section].read;
    return permission === null || mayRead(permission);
  };
  const withoutRecord = (each: RestoreFinding): RestoreFinding =>
    each.section !== null && shown(each.section)
      ? each
      : {
          ...each,
          key: null,
          message: `A record of ${each.section ?? ''} that you may not read stands against it`,
        };
  return {
    ...report,
    errors: report.errors.map((each) => (each.key === null ? each : withoutRecord(each))),
    preview: {
      ...report.preview,
      differences: report.preview.differences.filter(({ section }) => shown(section)),
    },
  };
}
