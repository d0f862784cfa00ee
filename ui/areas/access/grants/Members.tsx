import { useQuery } from '@tanstack/react-query';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import { formatNumberOf } from '../../../parts/format.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Section } from '../../../parts/Section.tsx';
import { membersQuery } from './grantQueries.ts';
import classes from '../Access.module.css';

type Props = { providerId: string; group: string };

/** Whom a mapping of a group reaches: those who had the group at their last login. */
export function Members({ providerId, group }: Props) {
  const { canAnywhere } = usePermissions();
  const isReader = canAnywhere('user:read');
  const { data, error, refetch } = useQuery({
    ...membersQuery(providerId, group),
    enabled: isReader,
  });
  if (!isReader) return null;
  const count = data?.count;
  return (
    <Section
      title="Who gets it"
      note={count && formatNumberOf(count.value, 'user')}
      actions={
        <PageLink to="/access/users" search={{ providerId, group }}>
          As a list
        </PageLink>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <p className={classes.muted}>
        Users who had the group <Exact text={group} /> at their last login. Others get the role with
        their next login, if they are in the group then.
      </p>
      {data?.items.length === 0 && (
        <p className={classes.muted}>No user that you may see. The name is case-sensitive.</p>
      )}
      {data && data.items.length > 0 && (
        <ul className={classes.chips}>
          {data.items.map(({ id, displayName }) => (
            <li key={id} className={classes.chip}>
              <AppLink to={recordPath(id)}>
                <Exact text={displayName} />
              </AppLink>
            </li>
          ))}
          {data.nextCursor !== null && <li className={classes.chip}>and others</li>}
        </ul>
      )}
    </Section>
  );
}
