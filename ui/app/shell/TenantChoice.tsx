import { Select, Tooltip } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { answer, api } from '../api.ts';
import { notifyProblem } from '../notify.ts';
import { useSession } from '../session/useSession.ts';

/** Tenants that the list shows; a text in the field finds others. */
const SHOWN = 20;
const TYPING_MS = 200;

/** Chooses among the tenants of the user. The list is open at first: a button has led here. */
export default function TenantChoice({ label }: { label: string; onClose: () => void }) {
  const { tenant, tenants, switchTenant } = useSession();
  const [text, setText] = useState('');
  const found = useTenants(text === tenant ? '' : text, tenants);
  const change = useMutation({ mutationFn: switchTenant, onError: notifyProblem });
  const shown = found.some(({ value }) => value === tenant)
    ? found
    : [{ value: tenant, label: tenant }, ...found];
  return (
    <Tooltip label={label}>
      <Select
        aria-label={label}
        variant="unstyled"
        autoFocus
        defaultDropdownOpened
        leftSection={<Icon name="users" />}
        searchable={tenants === undefined || tenants.length > SHOWN}
        allowDeselect={false}
        data={shown}
        value={tenant}
        searchValue={text}
        onSearchChange={setText}
        nothingFoundMessage="No such tenant"
        comboboxProps={{ width: 240, position: 'bottom-start' }}
        onChange={(id) => {
          if (id !== null && id !== tenant) change.mutate(id);
        }}
      />
    </Tooltip>
  );
}

type Choice = { value: string; label: string };

/** Those of the user, or what the service finds for users with rights everywhere. */
function useTenants(text: string, known: readonly string[] | undefined): Choice[] {
  const [typed] = useDebouncedValue(text.trim(), TYPING_MS);
  const { data } = useQuery({
    queryKey: ['session', 'tenants', typed],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/inventory/tenants', {
          params: { query: { limit: SHOWN, ...(typed !== '' && { q: typed }) } },
          signal,
        }),
      ),
    enabled: known === undefined,
    placeholderData: keepPreviousData,
  });
  if (known !== undefined) return known.map((id) => ({ value: id, label: id }));
  return data?.items.map(({ id }) => ({ value: id, label: id })) ?? [];
}
