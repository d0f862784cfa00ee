import { Alert, Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { TENANT_HEADER } from './session/tenant.ts';
import { useSession } from './session/useSession.ts';

export type FormTenant = {
  /** The tenant that what is created belongs to. */
  tenant: string;
  /** The headers of the request that creates it. */
  headers: Record<string, string>;
  /** The tenant of the session, if that is another one. */
  other: string | undefined;
  takeOther: () => void;
};

/**
 * The tenant of what a form creates: that of the session when the form was opened. A switch of the tenant,
 * perhaps in another tab, changes it only if the user wants that.
 */
export function useFormTenant(): FormTenant {
  const { tenant: present } = useSession();
  const [tenant, setTenant] = useState(present);
  return {
    tenant,
    headers: { [TENANT_HEADER]: tenant },
    other: present === tenant ? undefined : present,
    takeOther: () => setTenant(present),
  };
}

/** Says that the tenant of the session is no longer that of the form. */
export function TenantNotice({ form: { tenant, other, takeOther } }: { form: FormTenant }) {
  if (other === undefined) return null;
  return (
    <Alert color="yellow" title={`You have switched to the tenant ${other}`} role="status">
      <Group gap="sm">
        <Text size="sm">What you create here still belongs to {tenant}.</Text>
        <Button variant="default" onClick={takeOther}>
          Create it in {other}
        </Button>
      </Group>
    </Alert>
  );
}
