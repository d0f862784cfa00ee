import type { FieldError } from '../../parts/problems.ts';
import type { ScheduleDraft } from './draft.ts';

/** What the parts of the form share. */
export type FieldsProps = {
  draft: ScheduleDraft;
  /** Changes some fields. */
  onChange: (change: Partial<ScheduleDraft>) => void;
  errors: readonly FieldError[];
};
