import type { Filter } from '../../../parts/list/search.ts';
import { capitalized } from '../../../../domain/shared/nouns.ts';
import { outcomeLabel, OUTCOMES } from './importText.ts';

export const IMPORT_FILTERS = [
  { id: 'dryRun', label: 'Dry runs', kind: 'flag', on: true },
  { id: 'resource', label: 'Resource', kind: 'choice', facet: true },
  { id: 'createdBy', label: 'Sent by', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Sent', kind: 'time' },
] as const satisfies readonly Filter[];

/** The filters of rows. The outcomes of a dry run are a plan. */
export const rowFilters = (dryRun: boolean) =>
  [
    {
      id: 'outcome',
      label: 'Outcome',
      kind: 'choice',
      inline: true,
      facet: true,
      choices: OUTCOMES.map((value) => ({
        value,
        label: capitalized(outcomeLabel(value, dryRun)),
      })),
    },
  ] as const satisfies readonly Filter[];
