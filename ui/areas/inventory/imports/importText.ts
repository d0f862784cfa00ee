import type { Schemas } from '../../../app/api.ts';
import { formatCount, formatNumberOf } from '../../../parts/format.ts';
import { headingOf, nounOf } from '../../../../domain/shared/nouns.ts';
import { ownValue } from '../../../parts/ownValue.ts';
import { isRunning, type Import } from './importQueries.ts';

export type Outcome = Schemas['ImportOutcome'];

/** The outcomes of rows in the order in which they matter. */
export const OUTCOMES: readonly Outcome[] = [
  'invalid',
  'conflict',
  'created',
  'updated',
  'deleted',
  'unchanged',
  'skipped',
];

/** What the rows of an import are about. */
export const subjectOf = (resource: string | null): string =>
  resource === null ? 'several resources' : nounOf(resource, 2);

export const titleOfImport = ({ dryRun, resource }: Pick<Import, 'dryRun' | 'resource'>): string =>
  dryRun ? `Dry run of ${subjectOf(resource)}` : `Import of ${subjectOf(resource)}`;

export const resourceLabel = (resource: string | null): string =>
  resource === null ? 'Several' : headingOf(resource);

type Counts = Pick<Import, 'counts' | 'dryRun' | 'rows'>;

const countOf = ({ counts }: Pick<Import, 'counts'>, outcome: Outcome): number =>
  counts[outcome] ?? 0;

/** The number of rows that are written, or that a dry run would have written. */
export const goodRows = (record: Pick<Import, 'counts'>): number =>
  (['created', 'updated', 'deleted', 'unchanged'] as const).reduce(
    (sum, outcome) => sum + countOf(record, outcome),
    0,
  );

const VERBS: Readonly<Record<Outcome, readonly [done: string, planned: string]>> = {
  created: ['created', 'to create'],
  updated: ['updated', 'to update'],
  deleted: ['deleted', 'to delete'],
  unchanged: ['unchanged', 'unchanged'],
  invalid: ['invalid', 'invalid'],
  conflict: ['in conflict', 'in conflict'],
  skipped: ['skipped', 'skipped'],
};

/** The outcome of rows as a list has it; that of a dry run is a plan. */
export const outcomeLabel = (outcome: Outcome, dryRun: boolean): string =>
  ownValue(VERBS, outcome)?.[dryRun ? 1 : 0] ?? outcome;

/** The outcomes of an import in a line: `3 to create, 1 invalid`. */
export function countsText(record: Counts): string {
  const parts = OUTCOMES.filter((outcome) => countOf(record, outcome) > 0).map(
    (outcome) => `${formatCount(countOf(record, outcome))} ${outcomeLabel(outcome, record.dryRun)}`,
  );
  return parts.length === 0 ? 'No row yet' : parts.join(', ');
}

/** The number of rows that an import has changed something with. */
const writtenRows = (record: Pick<Import, 'counts'>): number =>
  (['created', 'updated', 'deleted'] as const).reduce(
    (sum, outcome) => sum + countOf(record, outcome),
    0,
  );

/** Why the rows of a dry run cannot be imported; undefined if they can. `applied` is the newest import of them. */
export function whyNotApply(
  record: Import,
  applied: Import | null | undefined,
): string | undefined {
  if (isRunning(record)) return 'The dry run has not ended.';
  if (record.done < record.rows) return 'The dry run has not checked all rows.';
  if (!record.contentVisible) return 'Only the sender of the file can import its rows.';
  if (goodRows(record) === 0) return 'No row can be imported.';
  if (applied != null && (isRunning(applied) || writtenRows(applied) > 0))
    return 'The rows have already been imported.';
  return undefined;
}

/** What importing the rows of a dry run does. */
export function applyText(record: Import): string {
  const good = formatNumberOf(goodRows(record), 'row');
  const bad = record.rows - goodRows(record);
  const left = bad === 0 ? '' : ` ${formatNumberOf(bad, 'row')} will not be written.`;
  return `${good} of ${formatCount(record.rows)} will be written, exactly as they were checked.${left}`;
}
