import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Subject } from '../../parts/Subject.tsx';
import { Time } from '../../parts/Time.tsx';
import classes from './Access.module.css';

type Props = {
  title: string;
  /** The filter of the audit log: by who has done it, or by what it was done to. */
  by: 'actorId' | 'subjectId';
  id: string;
};

const SHOWN = 10;
/** Entries are no events. */
const REFRESH_MS = 15_000;

const entriesQuery = (by: Props['by'], id: string) => ({
  queryKey: ['access', 'audit', by, id],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(
      api.GET('/api/audit', {
        params: { query: { [by]: [id], limit: SHOWN, include: 'labels,people' } },
        signal,
      }),
    ),
});

/** The newest entries of the audit log about an account or a record, for those who may read the log. */
export function AuditSection({ title, by, id }: Props) {
  const { canAnywhere } = usePermissions();
  const isReader = canAnywhere('audit:read');
  const query = entriesQuery(by, id);
  const { data, error, refetch } = useQuery({ ...query, enabled: isReader });
  usePolling(query.queryKey, REFRESH_MS);
  if (!isReader) return null;
  return (
    <Section
      title={title}
      actions={
        <PageLink to="/audit" search={{ [by]: id }}>
          All in the audit log
        </PageLink>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data?.items.length === 0 && (
        <p className={classes.muted}>The audit log has nothing that you may see.</p>
      )}
      {data && data.items.length > 0 && (
        <div className={classes.scroll} tabIndex={0} role="region" aria-label={`${title}: entries`}>
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">What</th>
                <th scope="col">{by === 'actorId' ? 'Record' : 'Who'}</th>
                <th scope="col">Outcome</th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((entry) => (
                <tr key={entry.id}>
                  <td>
                    <Time value={entry.at} />
                  </td>
                  <td>
                    <AppLink to={`/audit/${entry.id}`}>{entry.action}</AppLink>
                  </td>
                  <td>
                    {by === 'actorId' ? (
                      <Subject subject={entry.subject} names={data.included} />
                    ) : (
                      <Actor id={entry.actorId} names={data.included} />
                    )}
                  </td>
                  <td>
                    <StatusBadge status={entry.outcome} plain />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}
