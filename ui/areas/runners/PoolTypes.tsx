import { useQuery } from '@tanstack/react-query';
import { AppLink } from '../../parts/AppLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { poolTypesQuery, type Pool } from './runnerQueries.ts';
import classes from './Runners.module.css';

/** The job types that runners of a pool have announced. */
export function PoolTypes({ pool: { name } }: { pool: Pool }) {
  const { canAnywhere } = usePermissions();
  const isReader = canAnywhere('job:read');
  const { data: types, error, refetch } = useQuery({ ...poolTypesQuery(name), enabled: isReader });
  return (
    <Section title="Job types">
      {!isReader && <p className={classes.muted}>Job types need the permission job:read.</p>}
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {types?.length === 0 && (
        <p className={classes.muted}>No runner of the pool has announced a type.</p>
      )}
      {types && types.length > 0 && (
        <table className={classes.table}>
          <tbody>
            {types.map((type) => (
              <tr key={type.name}>
                <td>
                  <AppLink to={`/job-types/${encodeURIComponent(type.name)}`}>{type.name}</AppLink>
                </td>
                <td>
                  <StatusBadge status={type.state} plain />
                </td>
                <td>{type.summary}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}
