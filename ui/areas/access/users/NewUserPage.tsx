import { PasswordInput, Radio, Stack, Switch, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { useIdempotencyKeys } from '../../../app/idempotency.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useSend } from '../../../app/useSend.ts';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields, type FieldError } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { ShownOnceGuard } from '../../../parts/ShownOnce.tsx';
import { useDraft } from '../useDraft.tsx';
import { OneTimePassword } from './OneTimePassword.tsx';
import { USER_FIELDS, UserFields, type UserDraft } from './UserFields.tsx';
import { USERS_KEY } from './userQueries.ts';

const PARENT = { label: 'Users', to: '/access/users' };
const SHOWN = [...USER_FIELDS, '/username', '/password', '/mustChangePassword'];

type Draft = UserDraft & {
  username: string;
  /** Null: the service makes a one-time password. */
  password: string | null;
  mustChangePassword: boolean;
};

function requestOf({ username, displayName, email, tenantId, ...rest }: Draft) {
  const { password, mustChangePassword } = rest;
  return {
    username: username.trim(),
    ...(displayName.trim() !== '' && { displayName: displayName.trim() }),
    ...(email.trim() !== '' && { email: email.trim() }),
    tenantId: tenantId.trim(),
    // A one-time password must be changed in any case.
    mustChangePassword: password === null || mustChangePassword,
    ...(password !== null && { password }),
  };
}

/** Creates the account. A repeat after an outage has the same idempotency key. */
function useCreate() {
  const client = useQueryClient();
  const keys = useIdempotencyKeys();
  return async (draft: Draft): Promise<Schemas['UserWithPassword']> => {
    const body = requestOf(draft);
    const made = await keys.once(body, (header) =>
      answer(api.POST('/api/users', { params: { header }, body })),
    );
    void client.invalidateQueries({ queryKey: USERS_KEY });
    return made;
  };
}

const startOf = (tenantId: string) => (): Draft => ({
  username: '',
  displayName: '',
  email: '',
  tenantId,
  password: null,
  mustChangePassword: true,
});

/** Creates a local account. Its one-time password is shown once. */
export function NewUserPage() {
  const { tenant } = useSession();
  const navigate = useNavigate();
  const { draft, change, allowLeave, guard } = useDraft(startOf(tenant));
  const [made, setMade] = useState<Schemas['UserWithPassword']>();
  const { send, busy, problem } = useSend();
  const create = useCreate();
  const { errors } = problemFields(problem);
  const leave = (id: string) =>
    void navigate({ to: '/access/users/$userId', params: { userId: id } });
  const submit = async () => {
    const user = await create(draft);
    allowLeave();
    if (draft.password === null) setMade(user);
    else leave(user.id);
  };
  return (
    <RecordPage
      parent={PARENT}
      title="New user"
      note="A local account. Users of identity providers get theirs with the first login."
      form
    >
      {guard}
      <ShownOnceGuard isNeeded={() => busy && draft.password === null} />
      {made && (
        <OneTimePassword
          username={made.username}
          password={made.oneTimePassword}
          onDone={() => leave(made.id)}
        />
      )}
      <RecordForm
        problem={problem}
        shown={SHOWN}
        onSubmit={() => void send(submit)}
        busy={busy || made !== undefined}
        submit="Create user"
        permission="user:write"
        where={{ tenantId: draft.tenantId.trim() }}
        back="/access/users"
      >
        <UsernameField
          value={draft.username}
          onChange={(username) => change({ username })}
          error={errorAt(errors, '/username')}
        />
        <UserFields draft={draft} onChange={change} errors={errors} />
        <PasswordChoice draft={draft} onChange={change} errors={errors} />
      </RecordForm>
    </RecordPage>
  );
}

type UsernameProps = {
  value: string;
  onChange: (username: string) => void;
  error: string | undefined;
};

function UsernameField({ value, onChange, error }: UsernameProps) {
  return (
    <TextInput
      label="User name"
      description="To sign in with; it never changes"
      required
      maxLength={128}
      autoComplete="off"
      spellCheck={false}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
    />
  );
}

type ChoiceProps = {
  draft: Draft;
  onChange: (change: Partial<Draft>) => void;
  errors: readonly FieldError[];
};

function PasswordChoice({ draft, onChange, errors }: ChoiceProps) {
  const { password, mustChangePassword } = draft;
  return (
    <>
      <Radio.Group
        label="Password"
        size="xs"
        value={password === null ? 'made' : 'typed'}
        onChange={(value) => onChange({ password: value === 'made' ? null : '' })}
      >
        <Stack gap={10} mt={8}>
          <Radio
            size="xs"
            value="made"
            label="A one-time password, which is shown once after this"
          />
          <Radio size="xs" value="typed" label="A password that you type" />
        </Stack>
      </Radio.Group>
      {password !== null && (
        <>
          <PasswordInput
            label="Password of the user"
            description="At least 12 characters, not a common password"
            required
            // A browser that fills in the password of its user would set that one.
            autoComplete="new-password"
            value={password}
            onChange={(event) => onChange({ password: event.currentTarget.value })}
            error={errorAt(errors, '/password')}
          />
          <Switch
            label="It must be changed at the first login"
            checked={mustChangePassword}
            onChange={(event) => onChange({ mustChangePassword: event.currentTarget.checked })}
          />
        </>
      )}
    </>
  );
}
