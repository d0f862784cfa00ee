import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { AuditSection } from '../AuditSection.tsx';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { RoleHolders } from '../grants/RoleHolders.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { RoleAllows } from './RoleAllows.tsx';
import { roleQuery, ROLES_KEY, type Role } from './roleQueries.ts';

const route = getRouteApi('/frame/access/roles/$roleId');

const PARENT = { label: 'Roles', to: '/access/roles' };

/** A role: what it allows, and who has it. */
export function RolePage() {
  const { roleId } = route.useParams();
  const { data: role, error, refetch } = useQuery(roleQuery(roleId));
  useTitle(role && `Role ${role.name}`);
  useLiveRefresh(['rbac.role.*'], ROLES_KEY);
  useLiveRefresh(['rbac.assignment.*', 'rbac.mapping.*'], ['access', 'grants']);
  if (!role)
    return <UnreadRecord parent={PARENT} title="Role" id={roleId} error={error} retry={refetch} />;
  return (
    <RecordPage
      parent={PARENT}
      id={role.id}
      title={role.name}
      badge={role.builtIn && <StatusBadge status="none" label="Built in" />}
      actions={<Actions key={role.id} role={role} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <RoleAllows roleId={role.id} />
      <RoleHolders roleId={role.id} />
      <AuditSection title="History" by="subjectId" id={role.id} />
    </RecordPage>
  );
}

function Actions({ role }: { role: Role }) {
  const { id, builtIn } = role;
  const navigate = route.useNavigate();
  const { can } = useSession();
  const reason = builtIn ? 'Built-in roles cannot be changed; copy it instead.' : undefined;
  const edit = () => void navigate({ to: '/access/roles/$roleId/edit', params: { roleId: id } });
  useShortcuts(
    can('rbac:write', PLATFORM) && !builtIn ? [{ keys: 'e', label: 'Edit role', run: edit }] : [],
  );
  return (
    <>
      <Button
        variant="default"
        renderRoot={(props) => (
          <PageLink {...props} to="/access/compare-roles" search={{ roles: id }} />
        )}
      >
        Compare
      </Button>
      <PermissionButton
        permission="rbac:write"
        where={PLATFORM}
        icon="copy"
        variant="default"
        onClick={() => void navigate({ to: '/access/new-role', search: { from: id } })}
      >
        Copy
      </PermissionButton>
      <PermissionButton
        permission="rbac:write"
        where={PLATFORM}
        icon="edit"
        variant="default"
        reason={reason}
        onClick={edit}
      >
        Edit
      </PermissionButton>
      <DeleteButton role={role} />
    </>
  );
}

function DeleteButton({ role: { id, name, builtIn, version } }: { role: Role }) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  return (
    <ConfirmedChange
      permission="rbac:write"
      where={PLATFORM}
      icon="trash"
      label="Delete"
      reason={builtIn ? 'Built-in roles cannot be deleted.' : undefined}
      title={`Delete the role ${name}?`}
      confirm="Delete role"
      danger
      run={() =>
        answer(
          api.DELETE('/api/rbac/roles/{id}', {
            params: { path: { id }, header: { 'If-Match': `"${version}"` } },
          }),
        )
      }
      onDone={async () => {
        await navigate({ to: '/access/roles' });
        client.removeQueries({ queryKey: roleQuery(id).queryKey });
        void client.invalidateQueries({ queryKey: ROLES_KEY });
      }}
    >
      A role can be deleted when nobody has it: its assignments and mappings must be removed first.
    </ConfirmedChange>
  );
}
