import { TextInput } from '@mantine/core';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../../parts/problems.ts';
import { TenantField } from '../TenantField.tsx';

/** What can be changed of an account. */
export type UserDraft = { displayName: string; email: string; tenantId: string };

export const USER_FIELDS = ['/displayName', '/email', '/tenantId'];

type Props = {
  draft: UserDraft;
  onChange: (change: Partial<UserDraft>) => void;
  errors: readonly FieldError[];
};

/** Name, e-mail address and tenant of a user. */
export function UserFields({ draft, onChange, errors }: Props) {
  return (
    <>
      <TextInput
        label="Name"
        description="Shown to others beside what the user does"
        maxLength={255}
        autoComplete="off"
        value={draft.displayName}
        onChange={(event) => onChange({ displayName: event.currentTarget.value })}
        error={errorAt(errors, '/displayName')}
      />
      <TextInput
        label="E-mail"
        maxLength={254}
        autoComplete="off"
        value={draft.email}
        onChange={(event) => onChange({ email: event.currentTarget.value })}
        error={errorAt(errors, '/email')}
      />
      <TenantField
        description="The tenant whose administrators manage the account. It grants the user no rights"
        required
        withPlatform
        value={draft.tenantId}
        onChange={(tenantId) => onChange({ tenantId })}
        error={errorAt(errors, '/tenantId')}
      />
    </>
  );
}
