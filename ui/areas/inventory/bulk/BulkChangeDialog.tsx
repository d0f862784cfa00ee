import { MultiSelect } from '@mantine/core';
import { useMemo, useState } from 'react';
import { objectOf } from '../../../parts/form/fieldErrors.ts';
import { labelOfField } from '../../../parts/format.ts';
import { SchemaForm } from '../../../parts/schemaForm/SchemaForm.tsx';
import { emptyValue } from '../recordChanges.ts';
import { partialSchema, sharedFields, type RecordValues } from '../recordSchema.ts';
import { BulkDialog } from './BulkDialog.tsx';
import type { BulkProps } from './useBulk.ts';

/** Sets the same values of several records in some fields. A field without a value is cleared. */
export function BulkChangeDialog(props: BulkProps & { onClose: () => void }) {
  const { resource, ids } = props;
  const [names, setNames] = useState<string[]>([]);
  const [values, setValues] = useState<RecordValues>({});
  const [isIncomplete, setIncomplete] = useState(false);
  const schema = useMemo(() => partialSchema(resource, names), [resource, names]);
  const shared = sharedFields(resource);
  const fields = Object.fromEntries(
    shared
      .filter(({ name }) => names.includes(name))
      .map((field) => [field.name, values[field.name] ?? emptyValue(field)]),
  );
  const changes =
    names.length === 0 || isIncomplete
      ? []
      : ids.map((id) => ({
          ...{ resource: resource.name, operation: 'update' as const },
          record: { id, ...fields },
        }));
  return (
    <BulkDialog
      {...props}
      verb="Change"
      changes={changes}
      nothing="Choose fields and their values: what changes is shown here."
    >
      <MultiSelect
        label="Fields to change"
        searchable
        data={shared.map(({ name }) => ({
          value: name,
          label: labelOfField(name),
        }))}
        value={names}
        onChange={setNames}
        hidePickedOptions
      />
      {names.length > 0 && (
        <SchemaForm
          label="New values"
          schema={schema}
          value={values}
          onChange={(next) => setValues(objectOf(next))}
          errors={[]}
          disabled={false}
          onIncomplete={setIncomplete}
        />
      )}
    </BulkDialog>
  );
}
