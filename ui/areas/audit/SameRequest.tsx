import { useQuery } from '@tanstack/react-query';
import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { serverNow } from '../../parts/clock.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { Subject } from '../../parts/Subject.tsx';
import { readEntries } from './auditQueries.ts';
import classes from './Audit.module.css';

const SHOWN = 50;

/** What else the request of an entry has done. */
export function SameRequest({ requestId, without }: { requestId: string; without: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['audit', 'request', requestId],
    queryFn: ({ signal }) =>
      readEntries({ requestId }, new Date(serverNow()), { limit: SHOWN }, signal),
  });
  const others = data?.items.filter(({ id }) => id !== without) ?? [];
  if (!error && others.length === 0) return null;
  return (
    <Section
      title="Of the same request"
      actions={
        <PageLink to="/audit" search={{ requestId }}>
          {data?.nextCursor == null ? 'As a list' : 'All of them'}
        </PageLink>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <table className={classes.entries}>
        <thead>
          <tr>
            <th scope="col">Action</th>
            <th scope="col">Record</th>
            <th scope="col">Who</th>
          </tr>
        </thead>
        <tbody>
          {others.map((entry) => (
            <tr key={entry.id}>
              <td>
                <AppLink to={`/audit/${entry.id}`}>{entry.action}</AppLink>
              </td>
              <td>
                <Subject subject={entry.subject} names={data?.included} />
              </td>
              <td>
                <Actor id={entry.actorId} names={data?.included} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}
