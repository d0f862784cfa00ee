import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { providerQuery, type Provider } from './providerQueries.ts';

type Props = { provider: Provider };

const LOCAL = 'local';

/** What can be done with an identity provider. */
export function ProviderActions({ provider }: Props) {
  const { id } = provider;
  const { can } = useSession();
  const navigate = useNavigate();
  const edit = () =>
    void navigate({ to: '/access/providers/$providerId/edit', params: { providerId: id } });
  useShortcuts(
    can('auth:write', PLATFORM) ? [{ keys: 'e', label: 'Edit identity provider', run: edit }] : [],
  );
  return (
    <>
      <PermissionButton
        permission="auth:write"
        where={PLATFORM}
        icon="edit"
        variant="default"
        onClick={edit}
      >
        Edit
      </PermissionButton>
      <StateButton provider={provider} />
      {id !== LOCAL && <DeleteButton provider={provider} />}
    </>
  );
}

function StateButton({ provider: { id, name, enabled, version } }: Props) {
  const shared = {
    permission: 'auth:write',
    where: PLATFORM,
    run: () =>
      answer(
        api.PUT('/api/auth/providers/{id}', {
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
        confirm="Disable identity provider"
        danger
      >
        Nobody can sign in with it, and all sessions and running jobs of its users end.
        {id === LOCAL && ' These are all users with a password, perhaps you too.'} Their API tokens
        are refused and their jobs no longer run until it is enabled again.
      </ConfirmedChange>
    );
  return (
    <ConfirmedChange
      {...shared}
      icon="play"
      label="Enable"
      title={`Enable ${name}?`}
      confirm="Enable identity provider"
    >
      Users can sign in with it, and get the roles that their groups are mapped to.
    </ConfirmedChange>
  );
}

function DeleteButton({ provider: { id, name, version } }: Props) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return (
    <ConfirmedChange
      permission="auth:write"
      where={PLATFORM}
      icon="trash"
      label="Delete"
      title={`Delete ${name}?`}
      confirm="Delete identity provider"
      typed={{ id, label: name }}
      danger
      run={() =>
        answer(
          api.DELETE('/api/auth/providers/{id}', {
            params: { path: { id }, header: { 'If-Match': `"${version}"` } },
          }),
        )
      }
      onDone={async () => {
        await navigate({ to: '/access/providers' });
        client.removeQueries({ queryKey: providerQuery(id).queryKey });
        void client.invalidateQueries({ queryKey: ['access'] });
      }}
    >
      Its group mappings are deleted, its users are disabled and their sessions end. This cannot be
      undone: a new provider for the same server has other users.
    </ConfirmedChange>
  );
}
