import { Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState, type ReactNode } from 'react';
import type { Found } from '../list/search.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { problemFields } from '../problems.ts';
import { shortId } from '../recordIds.ts';
import { recordQuery, recordsQuery } from './findRecords.ts';
import { shareOf, shareOptions } from './shares.ts';
import classes from './RecordPicker.module.css';

type Props = {
  /** A resource of the inventory as its path has it: `devices`. */
  resource: string;
  /** Whom a record is shared with: every tenant can be chosen, and ids can be typed. */
  isShare?: boolean | undefined;
  /** The id of the chosen record. */
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  label?: string | undefined;
  /** Names the field for screen readers instead of a label. */
  'aria-label'?: string | undefined;
  description?: ReactNode;
  withAsterisk?: boolean | undefined;
  error?: string | undefined;
  disabled?: boolean | undefined;
  id?: string | undefined;
  onBlur?: (() => void) | undefined;
};

/** What the list offers: what was found, and the chosen record while nothing is searched. */
function useOptions({ resource, value, isShare = false }: Props, typed: string, isOpen: boolean) {
  const [picked, setPicked] = useState<Found>();
  const wasPicked = picked !== undefined && picked.id === value;
  const named = useQuery({
    ...recordQuery(resource, value ?? ''),
    enabled: value !== undefined && !wasPicked && shareOf(value) === undefined,
  });
  const chosen: Found | undefined =
    value === undefined
      ? undefined
      : wasPicked
        ? picked
        : (shareOf(value) ?? named.data ?? { id: value, label: shortId(value) });
  const wanted = useDeferredValue(typed.trim());
  const search = useQuery({
    ...recordsQuery(resource, wanted),
    enabled: isOpen,
    placeholderData: keepPreviousData,
  });
  const found = isShare ? shareOptions(wanted, search.data ?? []) : (search.data ?? []);
  const isListed = chosen === undefined || found.some(({ id }) => id === chosen.id);
  const options = isListed || wanted !== '' ? found : [chosen, ...found];
  return { options, chosen, search, pick: setPicked };
}

/** Chooses a record of the inventory: it is searched by name, or by what else the search knows. */
export function RecordPicker(props: Props) {
  const { resource, isShare, value, onChange, error, ...input } = props;
  /** What the user searches for; undefined while the field shows the chosen record. */
  const [typed, setTyped] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const { options, chosen, search, pick } = useOptions(props, typed ?? '', isOpen);
  const problem = search.error ? problemFields(search.error).detail : undefined;
  return (
    <Select
      {...input}
      searchable
      clearable={input.withAsterisk !== true}
      clearButtonProps={{ 'aria-label': `Clear the ${nounOf(resource, 1)}` }}
      placeholder={`Search ${nounOf(resource, 2)}`}
      data={options.map(({ id, label }) => ({ value: id, label }))}
      // The service has searched.
      filter={({ options: found }) => found}
      renderOption={({ option }) => (
        <span className={classes.option}>
          <span>{option.label}</span>
          <span className={classes.detail}>
            {options.find(({ id }) => id === option.value)?.detail}
          </span>
        </span>
      )}
      value={value ?? null}
      onChange={(id) => {
        pick(options.find((each) => each.id === id));
        onChange(id ?? undefined);
      }}
      searchValue={typed ?? chosen?.label ?? ''}
      // Select also reports the label of its value, and that may be the one before the record had its name.
      onSearchChange={(text) =>
        setTyped([chosen?.label, shortId(value ?? '')].includes(text) ? undefined : text)
      }
      onDropdownOpen={() => setOpen(true)}
      onDropdownClose={() => {
        setOpen(false);
        setTyped(undefined);
      }}
      allowDeselect={false}
      nothingFoundMessage={search.isFetching ? 'Searching …' : 'Nothing found'}
      error={error ?? problem}
    />
  );
}
