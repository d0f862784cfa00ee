import { useQuery } from '@tanstack/react-query';
import { AppLink } from '../../parts/AppLink.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { runnerState, slotsText } from './poolText.ts';
import { poolRunnersQuery, type Pool, type Runner } from './runnerQueries.ts';
import classes from './Runners.module.css';

/** The runners of a pool; those that ended without a word are listed for an hour. */
export function PoolRunners({ pool: { name } }: { pool: Pool }) {
  const { data: runners, error, refetch } = useQuery(poolRunnersQuery(name));
  return (
    <Section title="Runners" note={runners && formatNumberOf(runners.length, 'runner')}>
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {runners?.length === 0 && (
        <Empty
          kind="nothing"
          title="No runners"
          detail="None has reported in the last hour. “New runner token” makes a token and shows the command that starts a runner with it. Jobs of the pool wait until then."
        />
      )}
      {runners && runners.length > 0 && (
        <div className={classes.scroll} tabIndex={0} role="group" aria-label="Runners of the pool">
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">Runner</th>
                <th scope="col">State</th>
                <th scope="col">Last heard</th>
                <th scope="col">Slots used</th>
                <th scope="col">Types</th>
                <th scope="col">Version</th>
              </tr>
            </thead>
            <tbody>
              {runners.map((runner) => (
                <Row key={runner.id} runner={runner} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function Row({ runner }: { runner: Runner }) {
  return (
    <tr>
      <td>
        <AppLink to={`/runners/${runner.id}`}>
          <Exact text={runner.name} />
        </AppLink>
      </td>
      <td>
        <StatusBadge {...runnerState(runner)} plain />
      </td>
      <td>
        <Time value={runner.seenAt} format="relative" />
      </td>
      <td>{slotsText(runner)}</td>
      <td>{Object.keys(runner.types).length}</td>
      <td>
        <Exact text={runner.version} />
      </td>
    </tr>
  );
}
