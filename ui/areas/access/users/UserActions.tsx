import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { OneTimePassword } from './OneTimePassword.tsx';
import { ResetDialog } from './ResetDialog.tsx';
import { LOCAL_PROVIDER, type User } from './userQueries.ts';

type Props = { user: User };

/** What can be done with a user. */
export function UserActions({ user }: Props) {
  const { id, tenantId } = user;
  const { can } = useSession();
  const navigate = useNavigate();
  const edit = () => void navigate({ to: '/access/users/$userId/edit', params: { userId: id } });
  useShortcuts(
    can('user:write', { tenantId }) ? [{ keys: 'e', label: 'Edit user', run: edit }] : [],
  );
  return (
    <>
      <PermissionButton
        permission="user:write"
        where={{ tenantId }}
        icon="edit"
        variant="default"
        onClick={edit}
      >
        Edit
      </PermissionButton>
      <ResetButton user={user} />
      <StateButton user={user} />
    </>
  );
}

function ResetButton({ user }: Props) {
  const session = useSession();
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<Schemas['UserWithPassword']>();
  const reason =
    user.id === session.account?.id
      ? 'Change your own password on the page Account.'
      : user.providerId === LOCAL_PROVIDER
        ? undefined
        : 'The identity provider manages the password of this account.';
  return (
    <>
      <PermissionButton
        permission="user:write"
        where={{ tenantId: user.tenantId }}
        icon="lock"
        variant="default"
        reason={reason}
        onClick={() => setOpen(true)}
      >
        Reset password
      </PermissionButton>
      <ResetDialog
        user={user}
        opened={isOpen}
        onClose={() => setOpen(false)}
        onMade={(next) => {
          setOpen(false);
          setMade(next);
        }}
      />
      {made && (
        <OneTimePassword
          username={made.username}
          password={made.oneTimePassword}
          onDone={() => setMade(undefined)}
        />
      )}
    </>
  );
}

function StateButton({ user: { id, username, tenantId, enabled, version } }: Props) {
  const set = (next: boolean) => () =>
    answer(
      api.PUT('/api/users/{id}', {
        params: { path: { id }, header: { 'If-Match': `"${version}"` } },
        body: { enabled: next },
      }),
    );
  const shared = {
    permission: 'user:write',
    where: { tenantId },
  };
  if (enabled)
    return (
      <ConfirmedChange
        {...shared}
        icon="ban"
        label="Disable"
        title={`Disable ${username}?`}
        confirm="Disable user"
        danger
        run={set(false)}
      >
        All sessions end, running jobs of the user are cancelled, and API tokens are refused. Queued
        jobs fail, and schedules of the user skip. Nothing is deleted: enabling the account makes
        its tokens and schedules work again.
      </ConfirmedChange>
    );
  return (
    <ConfirmedChange
      {...shared}
      icon="play"
      label="Enable"
      title={`Enable ${username}?`}
      confirm="Enable user"
      run={set(true)}
    >
      The user can sign in again, and has the roles that are assigned. You need every permission
      that the user has.
    </ConfirmedChange>
  );
}
