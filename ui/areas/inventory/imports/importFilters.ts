import type { Filter } from '../../../parts/list/search.ts';
import { labelOfField } from '../../../parts/format.ts';
import { OUTCOMES } from './importText.ts';

export const IMPORT_FILTERS = [
  { id: 'dryRun', label: 'Dry runs', kind: 'flag', on: true },
  { id: 'resource', label: 'Resource', kind: 'choice', facet: true },
  { id: 'createdBy', label: 'Sent by', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Sent', kind: 'time' },
] as const satisfies readonly Filter[];

export const ROW_FILTERS = [
  {
    id: 'outcome',
    label: 'Outcome',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: OUTCOMES.map((value) => ({ value, label: labelOfField(value) })),
  },
] as const satisfies readonly Filter[];
