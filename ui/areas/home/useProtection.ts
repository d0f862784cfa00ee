import { useQuery } from '@tanstack/react-query';
import { PLATFORM } from '../../app/session/tenant.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useNow } from '../../parts/useNow.ts';
import { protectionOf, type Sight } from './findings.ts';
import { backupsQuery, nextBackupQuery } from './queries.ts';

/** How well the data is protected, for those who may read backups: all of it, or that of the reader's tenant. */
export function useProtection(seen: { backups: Sight; schedules: Sight }) {
  const { can, tenant } = useSession();
  const seesAll = seen.backups === 'all';
  const isAllowed = seen.backups !== 'none';
  const mayReadSchedules = isAllowed && seen.schedules !== 'none';
  const tenantId = seesAll ? PLATFORM.tenantId : can('backup:read') ? tenant : undefined;
  const backups = useQuery({ ...backupsQuery(tenantId), enabled: isAllowed });
  const next = useQuery({ ...nextBackupQuery(tenantId), enabled: mayReadSchedules });
  const now = useNow();
  const reads = isAllowed ? [backups, ...(mayReadSchedules ? [next] : [])] : [];
  return {
    isAllowed,
    seesAll,
    seesAllSchedules: seen.schedules === 'all',
    state: backups.data && protectionOf(backups.data, now, seesAll),
    /** When the next full backup is scheduled, null if none is; undefined if that was not read. */
    next: next.data,
    reads,
    isRead: !isAllowed || backups.isSuccess,
  };
}

export type ProtectionRead = ReturnType<typeof useProtection>;
