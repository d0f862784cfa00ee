import { Actor } from '../../../parts/Actor.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import type { Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import type { Grant } from './grantQueries.ts';
import classes from '../Access.module.css';

type Props = { grant: Grant; names: Names | undefined };

/** Who has a role by a grant: an account, or a group of a provider. */
export function Grantee({ grant, names }: Props) {
  if ('userId' in grant) return <Actor id={grant.userId} names={names} full />;
  return (
    <span className={classes.prose}>
      group <Exact text={grant.externalGroup} /> of{' '}
      <RecordLink id={grant.providerId} names={names} kind="providers" />
    </span>
  );
}
