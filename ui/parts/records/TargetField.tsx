import type { FieldError } from '../problems.ts';
import { errorAt } from '../form/fieldErrors.ts';
import { RecordPicker } from './RecordPicker.tsx';
import { targetLabel, type TargetKind } from './target.ts';

type Props = {
  kind: TargetKind;
  /** The id of the record. */
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  errors: readonly FieldError[];
  disabled?: boolean;
  /** What belongs to the record. */
  subject?: string;
};

/** What a job, or the jobs of a schedule, are about. */
export function TargetField({
  kind,
  value,
  onChange,
  errors,
  disabled = false,
  subject = 'The job is',
}: Props) {
  return (
    <RecordPicker
      resource={`${kind}s`}
      label={targetLabel(kind)}
      description={`${subject} about this ${kind}.`}
      withAsterisk
      value={value}
      onChange={onChange}
      error={errorAt(errors, '/target/id') ?? errorAt(errors, '/target')}
      disabled={disabled}
    />
  );
}
