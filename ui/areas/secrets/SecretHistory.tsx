import { useQuery } from '@tanstack/react-query';
import { usePolling } from '../../app/usePolling.ts';
import { HistorySection } from '../../parts/history/HistorySection.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { secretHistoryQuery } from './secretQueries.ts';
import { historyText, jobOf } from './secretText.ts';

/** The attempts that get a secret are no events of it. */
const USES_MS = 15_000;

/** Who has changed a secret, and the attempts that got it, as the audit log says. */
export function SecretHistory({ secretId }: { secretId: string }) {
  const enabled = usePermissions().canAnywhere('audit:read');
  const query = secretHistoryQuery(secretId);
  const { data, error, refetch } = useQuery({ ...query, enabled });
  usePolling(query.queryKey, USES_MS);
  return (
    <HistorySection
      title="Changes and uses"
      what="Who has changed it, and the jobs that got it, need"
      subjectId={secretId}
      data={data}
      error={error}
      retry={() => void refetch()}
      text={(entry, names) => {
        const job = jobOf(entry);
        return (
          <>
            {historyText(entry)}
            {job !== undefined && (
              <>
                {' '}
                <RecordLink id={job} names={names} />
              </>
            )}
          </>
        );
      }}
    />
  );
}
