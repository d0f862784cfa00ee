import { TextInput } from '@mantine/core';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../../parts/problems.ts';
import { AccountPicker } from '../AccountPicker.tsx';
import { TenantField } from '../TenantField.tsx';

/** What can be changed of a service account. */
export type ServiceDraft = {
  name: string;
  displayName: string;
  ownerId: string | undefined;
  tenantId: string;
};

export const SERVICE_FIELDS = ['/name', '/displayName', '/ownerId', '/tenantId'];

type Props = {
  draft: ServiceDraft;
  onChange: (change: Partial<ServiceDraft>) => void;
  errors: readonly FieldError[];
};

/** Name, owner and tenant of a service account. */
export function ServiceFields({ draft, onChange, errors }: Props) {
  return (
    <>
      <TextInput
        label="Account"
        description="Unique in its tenant, such as ci"
        required
        maxLength={128}
        autoComplete="off"
        spellCheck={false}
        value={draft.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
        error={errorAt(errors, '/name')}
      />
      <TextInput
        label="Name"
        description="What it is for, such as Pipelines of the network team"
        maxLength={255}
        autoComplete="off"
        value={draft.displayName}
        onChange={(event) => onChange({ displayName: event.currentTarget.value })}
        error={errorAt(errors, '/displayName')}
      />
      <AccountPicker
        kind="people"
        label="Owner"
        description="The user who is responsible for it. Present and former owners cannot decide on its requests"
        required
        value={draft.ownerId}
        onChange={(ownerId) => onChange({ ownerId })}
        error={errorAt(errors, '/ownerId')}
      />
      <TenantField
        description="The tenant whose administrators manage it. It grants the account no rights"
        required
        withPlatform
        value={draft.tenantId}
        onChange={(tenantId) => onChange({ tenantId })}
        error={errorAt(errors, '/tenantId')}
      />
    </>
  );
}
