import { useQuery } from '@tanstack/react-query';
import { useNow } from '../../parts/useNow.ts';
import { protectionOf, type Sight } from './findings.ts';
import { backupSchedulesQuery, backupsQuery } from './queries.ts';

/** How well the data is protected, for those who may read backups. */
export function useProtection(sight: Sight, mayReadSchedules: boolean) {
  const isAllowed = sight !== 'none';
  const backups = useQuery({ ...backupsQuery, enabled: isAllowed });
  const schedules = useQuery({
    ...backupSchedulesQuery,
    enabled: isAllowed && mayReadSchedules,
  });
  const now = useNow();
  const reads = isAllowed ? [backups, ...(mayReadSchedules ? [schedules] : [])] : [];
  return {
    isAllowed,
    seesAll: sight === 'all',
    state:
      backups.data && protectionOf(backups.data, schedules.data?.items ?? [], now, sight === 'all'),
    reads,
    isRead: !isAllowed || backups.isSuccess,
  };
}

export type ProtectionRead = ReturnType<typeof useProtection>;
