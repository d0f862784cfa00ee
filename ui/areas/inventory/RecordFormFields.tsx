import { useMemo } from 'react';
import { errorsUnder, objectOf } from '../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../parts/problems.ts';
import { SchemaForm } from '../../parts/schemaForm/SchemaForm.tsx';
import type { Resource } from './inventoryQueries.ts';
import { customFieldsSchema, recordSchema, type RecordValues } from './recordSchema.ts';

type Props = {
  resource: Resource;
  isNew: boolean;
  values: RecordValues;
  onChange: (values: RecordValues) => void;
  errors: readonly FieldError[];
  disabled: boolean;
  onIncomplete: (isIncomplete: boolean) => void;
};

const CUSTOM = '/customFields';

/** What each of the two forms says of itself, as one: a form that is complete says nothing of the other. */
function useIncompleteForms(onIncomplete: Props['onIncomplete']) {
  return useMemo(() => {
    const incomplete = new Set<string>();
    const noteOf = (form: string) => (isIncomplete: boolean) => {
      if (isIncomplete) incomplete.add(form);
      else incomplete.delete(form);
      onIncomplete(incomplete.size > 0);
    };
    return { fields: noteOf('fields'), custom: noteOf('custom') };
  }, [onIncomplete]);
}

/** The fields of a record, then its custom fields. */
export function RecordFormFields(props: Props) {
  const { resource, isNew, values, onChange, errors, disabled, onIncomplete } = props;
  const schema = useMemo(() => recordSchema(resource, isNew), [resource, isNew]);
  const custom = useMemo(() => customFieldsSchema(resource), [resource]);
  const noteIncomplete = useIncompleteForms(onIncomplete);
  const own = useMemo(
    () =>
      errors.filter(({ pointer }) => errorsUnder([{ pointer, detail: '' }], CUSTOM).length === 0),
    [errors],
  );
  return (
    <>
      <SchemaForm
        label="Fields"
        schema={schema}
        value={values}
        onChange={(next) => onChange(objectOf(next))}
        errors={own}
        disabled={disabled}
        onIncomplete={noteIncomplete.fields}
      />
      {custom && (
        <SchemaForm
          label="Custom fields"
          schema={custom}
          value={values.customFields ?? {}}
          onChange={(next) => onChange({ ...values, customFields: objectOf(next) })}
          errors={errors}
          pointer={CUSTOM}
          disabled={disabled}
          onIncomplete={noteIncomplete.custom}
        />
      )}
    </>
  );
}
