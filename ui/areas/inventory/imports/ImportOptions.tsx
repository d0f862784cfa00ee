import { Checkbox, NativeSelect, Radio, Stack } from '@mantine/core';
import {
  MAX_ATOMIC_ROWS,
  MAX_DRY_RUN_ROWS,
  type ImportMode,
} from '../../../../domain/inventory/importLimits.ts';
import { formatCount } from '../../../parts/format.ts';
import { groupsOf, titleOf } from '../resources.ts';
import type { Resource } from '../inventoryQueries.ts';

export type Options = {
  /** Empty for a file whose lines say which resource they are about. */
  resource: string;
  mode: ImportMode;
  dryRun: boolean;
};

type Props = {
  options: Options;
  onChange: (options: Partial<Options>) => void;
  all: readonly Resource[];
  /** The lines of the file can say which resource they are about. */
  isMixable: boolean;
  disabled: boolean;
};

/** What the rows are about, and how they are written. */
export function ImportOptions({ options, onChange, all, isMixable, disabled }: Props) {
  const { resource, mode, dryRun } = options;
  const choices = groupsOf(all).map(({ title, resources }) => ({
    group: title,
    items: resources.map((each) => ({ value: each.name, label: titleOf(each) })),
  }));
  const first = isMixable
    ? { value: '', label: 'Several: each line names its resource' }
    : { value: '', label: 'Choose' };
  return (
    <>
      <NativeSelect
        label="Resource"
        description="What the rows of the file are"
        data={[first, ...choices]}
        value={resource}
        disabled={disabled}
        onChange={(event) => onChange({ resource: event.currentTarget.value })}
      />
      <Checkbox
        label="Dry run first"
        description={`Checks every row and writes nothing; then you decide. Up to ${formatCount(MAX_DRY_RUN_ROWS)} rows.`}
        checked={dryRun}
        disabled={disabled}
        onChange={(event) => onChange({ dryRun: event.currentTarget.checked })}
      />
      <Radio.Group
        label="Rows that cannot be written"
        value={mode}
        onChange={(value) => onChange({ mode: value === 'all' ? 'all' : 'each' })}
      >
        <Stack gap={8} mt={6}>
          <Radio
            value="each"
            disabled={disabled}
            label="Are left out"
            description="The valid rows are written."
          />
          <Radio
            value="all"
            disabled={disabled}
            label="Stop the import"
            description={`All rows are written together, or none. Up to ${formatCount(MAX_ATOMIC_ROWS)} rows.`}
          />
        </Stack>
      </Radio.Group>
    </>
  );
}
