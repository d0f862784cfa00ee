import { Autocomplete } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { MAX_TENANT_ID } from '../../../domain/access/tenantId.ts';
import { useSession } from '../../app/session/useSession.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { recordsQuery } from '../../parts/records/findRecords.ts';

type Props = {
  label?: string;
  description?: string;
  value: string;
  onChange: (tenantId: string) => void;
  error?: string | undefined;
  required?: boolean;
  /** Whether the whole installation can be meant. */
  withPlatform?: boolean;
};

/** Ids of tenants that can be chosen: those of the session, and those whose record is found. */
function useTenantIds(text: string, isOpen: boolean): string[] {
  const { tenant, tenants = [] } = useSession();
  const { canAnywhere } = usePermissions();
  const { data } = useQuery({
    ...recordsQuery('tenants', useDeferredValue(text.trim())),
    enabled: isOpen && canAnywhere('inventory:read'),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const own = [tenant, ...tenants].filter((id) => id.includes(text.trim()));
  return [...new Set([...own, ...(data ?? []).map(({ id }) => id)])];
}

/** The id of a tenant. It may have no record in the inventory, so any id can be typed. */
export function TenantField({ withPlatform = false, value, onChange, ...input }: Props) {
  const [isOpen, setOpen] = useState(false);
  const ids = useTenantIds(value, isOpen);
  return (
    <Autocomplete
      label="Tenant"
      size="xs"
      maxLength={MAX_TENANT_ID}
      spellCheck={false}
      {...input}
      value={value}
      onChange={onChange}
      data={ids.filter((id) => withPlatform || id !== 'platform')}
      // The service has searched.
      filter={({ options }) => options}
      onDropdownOpen={() => setOpen(true)}
      onDropdownClose={() => setOpen(false)}
    />
  );
}
