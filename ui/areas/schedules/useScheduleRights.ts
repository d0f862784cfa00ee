import { useQuery } from '@tanstack/react-query';
import { useJobTypes } from '../../app/jobTypes.ts';
import { useSession } from '../../app/session/useSession.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { inTenant, whyNotStart } from '../../parts/records/jobTarget.ts';
import { whereQuery } from '../../parts/records/whereQuery.ts';
import type { Where } from '../../parts/where.ts';
import type { Schedule } from './scheduleQueries.ts';

type Jobs = Pick<Schedule, 'tenantId' | 'jobType' | 'target' | 'overlapPolicy'>;

/**
 * Why the user may not start jobs of a schedule, and not cancel them where that is what the schedule does with
 * an unfinished one. The rights at the target of the jobs count.
 */
export function useScheduleRights({ tenantId, jobType, target, overlapPolicy }: Jobs): {
  start: string | undefined;
  cancel: string | undefined;
} {
  const { whyNot } = usePermissions();
  const { tenant } = useSession();
  const type = useJobTypes().data?.items.find(({ name }) => name === jobType);
  const { data: found } = useQuery({
    ...whereQuery(target?.kind ?? 'site', target?.id ?? ''),
    enabled: target !== null,
  });
  // Until it is known where the target is, the service decides.
  const where: Where = target === null ? { tenantId } : (found ?? { complete: false });
  const whyNotThere = (permission: string) => whyNot(permission, where);
  return {
    start: type && whyNotStart(inTenant(type, tenantId === tenant), whyNotThere),
    cancel: overlapPolicy === 'cancelOther' ? whyNotThere('job:cancel') : undefined,
  };
}
