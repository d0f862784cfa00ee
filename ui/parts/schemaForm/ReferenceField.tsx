import { RecordPicker } from '../records/RecordPicker.tsx';
import { useEmptyValue, useForm, type FieldProps } from './formContext.ts';

/** The id of a record, chosen by its name. */
export function ReferenceField(props: FieldProps<'reference'>) {
  const { shape, value, onChange, pointer, label, description, isRequired, isInline } = props;
  const { id, disabled, errorAt, touch } = useForm();
  const empty = useEmptyValue(shape, pointer, isRequired);
  return (
    <RecordPicker
      id={id(pointer)}
      resource={shape.resource}
      isShare={shape.isShare}
      value={typeof value === 'string' && value !== '' ? value : undefined}
      onChange={(chosen) => onChange(chosen ?? empty)}
      disabled={disabled}
      error={errorAt(pointer)}
      onBlur={() => touch(pointer)}
      withAsterisk={isRequired}
      {...(isInline === true ? { 'aria-label': label } : { label, description })}
    />
  );
}
