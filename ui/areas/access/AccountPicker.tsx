import { Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import type { Found } from '../../parts/list/search.ts';
import { problemFields } from '../../parts/problems.ts';
import { shortId } from '../../parts/recordIds.ts';
import { accountQuery, accountsQuery, type AccountKind } from './accounts.ts';

type Props = {
  label: string;
  description?: string;
  kind?: AccountKind;
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  error?: string | undefined;
  required?: boolean;
};

const textOf = ({ label, detail }: Found): string =>
  detail === undefined || detail === label ? label : `${label} (${detail})`;

/** Chooses an account, which is searched by a part of its name. */
export function AccountPicker({ kind = 'all', value, onChange, error, ...input }: Props) {
  const [typed, setTyped] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const named = useQuery({ ...accountQuery(value ?? ''), enabled: value !== undefined });
  const wanted = useDeferredValue(typed ?? '');
  const search = useQuery({
    ...accountsQuery(wanted, kind),
    enabled: isOpen,
    placeholderData: keepPreviousData,
  });
  const found = search.data ?? [];
  const chosen =
    value === undefined ? undefined : (named.data ?? { id: value, label: shortId(value) });
  const options =
    chosen === undefined || found.some(({ id }) => id === chosen.id) ? found : [chosen, ...found];
  const chosenText = chosen && textOf(chosen);
  const problem = search.error ? problemFields(search.error).detail : undefined;
  return (
    <Select
      {...input}
      size="xs"
      searchable
      placeholder="Search by name"
      data={options.map((each) => ({ value: each.id, label: textOf(each) }))}
      filter={({ options: all }) => all}
      value={value ?? null}
      onChange={(id) => onChange(id ?? undefined)}
      searchValue={typed ?? chosenText ?? ''}
      onSearchChange={(text) =>
        setTyped(text === chosenText || text === shortId(value ?? '') ? undefined : text)
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
