import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { backupColumns } from './backupColumns.tsx';
import { BACKUP_FILTERS } from './backupFilters.ts';
import { LIST_KEY, readBackups, setupQuery, type BackupSummary } from './backupQueries.ts';
import { BackupSchedules } from './BackupSchedules.tsx';
import { isInProgress } from './backupText.ts';
import { MissingSetup, SetupNotice } from './SetupNotice.tsx';
import { useBackupsLive } from './useBackupsLive.ts';

const route = getRouteApi('/frame/backups');

const keyOf = ({ id }: BackupSummary): string => id;

/** Backups by filters: what they contain, how far they can be relied on, and how long they are kept. */
export function BackupsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<BackupSummary>({
    queryKey: [...LIST_KEY, withoutAppearance(search)],
    read: (part, signal, now) => readBackups(search, now, part, signal),
  });
  const rows = list.rows ?? [];
  useBackupsLive(
    LIST_KEY,
    rows.some(({ status }) => isInProgress(status)),
  );
  useShortcuts(
    useSession().canAnywhere('backup:write')
      ? [{ keys: 'c', label: 'New backup', run: () => void navigate({ to: '/backups/new' }) }]
      : [],
  );
  const columns = useMemo(() => backupColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: BackupSummary) =>
      void navigate({ to: '/backups/$backupId', params: { backupId: id } }),
    [navigate],
  );
  const { data: setup } = useQuery(setupQuery);
  const problems = setup?.storage.problems ?? [];
  return (
    <ListPage
      title="Backups"
      noun={['backup', 'backups']}
      permission="backup:read"
      actions={<NewBackupButton />}
      list={list}
      filters={BACKUP_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={problems.length > 0 ? <MissingSetup problems={problems} /> : <NoBackups />}
    >
      {problems.length > 0 && rows.length > 0 && <SetupNotice problems={problems} />}
      <BackupSchedules />
    </ListPage>
  );
}

const NoBackups = () => (
  <Empty
    kind="nothing"
    title="No backups yet"
    detail="A backup stores the records of one instant in an encrypted file, while the installation is in use."
    action={<NewBackupButton />}
  />
);

/** Opens the form for a backup; hidden from those who may make none. */
function NewBackupButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('backup:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/backups/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New backup
    </Button>
  );
}
