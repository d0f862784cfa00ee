import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import type { ServiceAccount } from './serviceQueries.ts';

type Props = { account: ServiceAccount };

/** What can be done with a service account. */
export function ServiceActions({ account }: Props) {
  const { id, tenantId } = account;
  const { can } = useSession();
  const navigate = useNavigate();
  const edit = () =>
    void navigate({
      to: '/access/service-accounts/$accountId/edit',
      params: { accountId: id },
    });
  useShortcuts(
    can('user:write', { tenantId })
      ? [{ keys: 'e', label: 'Edit service account', run: edit }]
      : [],
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
      <StateButton account={account} />
    </>
  );
}

function StateButton({ account: { id, name, tenantId, enabled, version } }: Props) {
  const shared = {
    permission: 'user:write',
    where: { tenantId },
    run: () =>
      answer(
        api.PUT('/api/service-accounts/{id}', {
          params: { path: { id }, header: { 'If-Match': `"${version}"` } },
          body: { enabled: !enabled },
        }),
      ),
  };
  if (enabled)
    return (
      <ConfirmedChange
        {...shared}
        icon="ban"
        label="Disable"
        title={`Disable ${name}?`}
        confirm="Disable service account"
        danger
      >
        All its tokens are refused, its jobs no longer run, and its schedules skip their runs.
        Enabling it undoes this.
      </ConfirmedChange>
    );
  return (
    <ConfirmedChange
      {...shared}
      icon="play"
      label="Enable"
      title={`Enable ${name}?`}
      confirm="Enable service account"
    >
      Its tokens work again, as far as they are neither revoked nor expired. You need every
      permission that the account has.
    </ConfirmedChange>
  );
}
