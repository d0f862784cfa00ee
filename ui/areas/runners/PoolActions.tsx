import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { PLATFORM } from '../../app/session/tenant.ts';
import { useDeletion } from '../../parts/versioned/useDeletion.ts';
import { whyNotDelete } from './poolText.ts';
import { poolQuery, poolTypesQuery, type Pool } from './runnerQueries.ts';
import { RunnerTokenDialog } from './RunnerTokenDialog.tsx';

type Props = { pool: Pool };

/** What can be done with a pool. */
export function PoolActions({ pool }: Props) {
  const [isMaking, setMaking] = useState(false);
  const { whyNot, can } = usePermissions();
  const { account } = useSession();
  const navigate = useNavigate();
  const edit = () =>
    void navigate({ to: '/runners/pools/$pool/edit', params: { pool: pool.name } });
  useShortcuts(
    can('jobtype:write', PLATFORM) ? [{ keys: 'e', label: 'Edit the pool', run: edit }] : [],
  );
  const tokenReason = whyNot('user:write');
  return (
    <>
      <PermissionButton
        permission="jobtype:write"
        where={PLATFORM}
        icon="key"
        reason={tokenReason}
        onClick={() => setMaking(true)}
      >
        New runner token
      </PermissionButton>
      {isMaking && (
        <RunnerTokenDialog
          pool={pool.name}
          mayOwn={account !== undefined}
          onClose={() => setMaking(false)}
        />
      )}
      <PermissionButton
        permission="jobtype:write"
        where={PLATFORM}
        icon="edit"
        variant="default"
        onClick={edit}
      >
        Edit
      </PermissionButton>
      <DeleteButton pool={pool} />
    </>
  );
}

function DeleteButton({ pool }: Props) {
  const { name } = pool;
  const { canAnywhere } = usePermissions();
  const navigate = useNavigate();
  const client = useQueryClient();
  const types = useQuery({ ...poolTypesQuery(name), enabled: canAnywhere('job:read') });
  const { started, ask, dialog } = useDeletion(pool, {
    remove: (header) =>
      answer(api.DELETE('/api/pools/{name}', { params: { path: { name }, header } })),
    onDeleted: async () => {
      await navigate({ to: '/runners' });
      client.removeQueries({ queryKey: poolQuery(name).queryKey });
      void client.invalidateQueries({ queryKey: ['runners', 'list'] });
    },
    queryKey: poolQuery(name).queryKey,
  });
  return (
    <>
      <PermissionButton
        permission="jobtype:write"
        where={PLATFORM}
        icon="trash"
        variant="default"
        reason={whyNotDelete(types.data ?? [])}
        onClick={ask}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog {...dialog} title={`Delete the pool ${name}`} confirm="Delete pool">
        {started.runners > 0
          ? 'Its runners are refused from then on; stop them first. '
          : 'It has no living runner. '}
        Tokens and secrets that name the pool keep the name: a new pool of this name has them again.
      </ConfirmDialog>
    </>
  );
}
