import type { FieldError } from '../../parts/problems.ts';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { RecordPicker } from '../../parts/records/RecordPicker.tsx';
import type { TargetKind } from './jobTarget.ts';

type Props = {
  kind: TargetKind;
  /** The id of the record. */
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  errors: readonly FieldError[];
  disabled: boolean;
};

const LABELS: Readonly<Record<TargetKind, string>> = { site: 'Site', device: 'Device' };

/** What the job is about. */
export function TargetField({ kind, value, onChange, errors, disabled }: Props) {
  return (
    <RecordPicker
      resource={`${kind}s`}
      label={LABELS[kind]}
      description={`The job is about this ${kind} and belongs to it.`}
      withAsterisk
      value={value}
      onChange={onChange}
      error={errorAt(errors, '/target/id') ?? errorAt(errors, '/target')}
      disabled={disabled}
    />
  );
}
