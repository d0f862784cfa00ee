import { useQuery } from '@tanstack/react-query';
import { usePolling } from '../../app/usePolling.ts';
import { Actor } from '../../parts/Actor.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import { secretHistoryQuery } from './secretQueries.ts';
import { historyText, jobOf } from './secretText.ts';
import classes from './Secrets.module.css';

/** The attempts that get a secret are no events of it. */
const USES_MS = 15_000;

/** Who has changed a secret, and the attempts that got it, as the audit log says. */
export function SecretHistory({ secretId }: { secretId: string }) {
  const { canAnywhere } = usePermissions();
  const isReader = canAnywhere('audit:read');
  const query = secretHistoryQuery(secretId);
  const { data, error, refetch } = useQuery({ ...query, enabled: isReader });
  usePolling(query.queryKey, USES_MS);
  return (
    <Section title="Changes and uses">
      {!isReader && (
        <p className={classes.muted}>
          Who has changed it, and the jobs that got it, need the permission audit:read.
        </p>
      )}
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data?.items.length === 0 && (
        <p className={classes.muted}>The audit log has nothing about it that you may see.</p>
      )}
      {data && data.items.length > 0 && (
        <table className={classes.history}>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">What</th>
              <th scope="col">Who</th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((entry) => (
              <tr key={entry.id}>
                <td>
                  <Time value={entry.at} />
                </td>
                <td>
                  {historyText(entry)}
                  {jobOf(entry) !== undefined && (
                    <>
                      {' '}
                      <RecordLink id={jobOf(entry)} names={data.included} />
                    </>
                  )}
                </td>
                <td>
                  <Actor id={entry.actorId} names={data.included} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {data?.nextCursor != null && (
        <p className={classes.muted}>
          The newest {data.items.length}. All: <code>GET /api/audit?subjectId={secretId}</code>
        </p>
      )}
    </Section>
  );
}
