import { MultiSelect, Radio, Stack } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../api.ts';
import { useSession } from '../session/useSession.ts';
import { scopeParts } from './tokenForm.ts';
import type { FieldsProps } from './fields.ts';

const SINGULAR: Readonly<Record<string, string>> = {
  tenants: 'Tenant',
  sites: 'Site',
  devices: 'Device',
};
const PAUSE_MS = 200;
const MAX_FOUND = 20;

type Option = { value: string; label: string };

const optionOf = (kind: string, id: string, label: string): Option => ({
  value: `${kind} ${id}`,
  label: `${SINGULAR[kind] ?? kind} ${label}`,
});

/** Tenants, sites and devices for a text; without one, the first sites by name. */
function useFound(text: string): Option[] {
  const [q] = useDebouncedValue(text.trim(), PAUSE_MS);
  const found = useQuery({
    queryKey: ['auth', 'scopes', q],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/search', {
          params: { query: { q, kinds: 'tenants,sites,devices', limit: MAX_FOUND } },
          signal,
        }),
      ),
    enabled: q !== '',
    placeholderData: keepPreviousData,
    retry: false,
  });
  const sites = useQuery({
    queryKey: ['auth', 'scopes'],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/inventory/sites', {
          params: { query: { sort: 'name', limit: MAX_FOUND } },
          signal,
        }),
      ),
    retry: false,
  });
  if (q === '') return sites.data?.items.map(({ id, name }) => optionOf('sites', id, name)) ?? [];
  return found.data?.items.map(({ kind, id, label }) => optionOf(kind, id, label)) ?? [];
}

/** Everywhere that the owner may do something, or only some tenants, sites and devices. */
export function ScopePicker({ form, change, errorOf, owner }: FieldsProps) {
  const { scopes } = form;
  return (
    <div>
      <Radio.Group
        label="Where"
        size="xs"
        value={scopes === null ? 'all' : 'some'}
        onChange={(value) => change({ scopes: value === 'all' ? null : [] })}
        error={errorOf('resourceScopes')}
      >
        <Stack gap={10} mt={8}>
          <Radio
            size="xs"
            value="all"
            label={`Everywhere that ${owner === 'you' ? 'you' : 'the account'} may do it`}
          />
          <Radio size="xs" value="some" label="Only these tenants, sites and devices" />
        </Stack>
      </Radio.Group>
      {scopes !== null && (
        <Choice chosen={scopes} onChange={(values) => change({ scopes: values })} />
      )}
    </div>
  );
}

type ChoiceProps = { chosen: readonly string[]; onChange: (values: string[]) => void };

function Choice({ chosen, onChange }: ChoiceProps) {
  const { tenant, tenants = [tenant] } = useSession();
  const [text, setText] = useState('');
  const [known, setKnown] = useState<readonly Option[]>([]);
  const found = useFound(text);
  const own = tenants
    .filter((id) => id !== 'platform' && id.includes(text.trim().toLowerCase()))
    .map((id) => optionOf('tenants', id, id));
  // What is chosen has a label, also when it is not what is searched now.
  const selected = chosen.map((value) => {
    const [kind, id] = scopeParts(value);
    return known.find((option) => option.value === value) ?? optionOf(kind, id, id);
  });
  const data = [...selected, ...own, ...found].filter(
    ({ value }, i, all) => all.findIndex((option) => option.value === value) === i,
  );
  return (
    <MultiSelect
      aria-label="Tenants, sites and devices"
      placeholder="Search by name"
      size="xs"
      mt={6}
      searchable
      hidePickedOptions
      searchValue={text}
      onSearchChange={setText}
      nothingFoundMessage="Nothing found"
      // The service has filtered.
      filter={({ options }) => options}
      data={data}
      value={[...chosen]}
      onChange={(values) => {
        setKnown(data.filter(({ value }) => values.includes(value)));
        onChange(values);
      }}
    />
  );
}
