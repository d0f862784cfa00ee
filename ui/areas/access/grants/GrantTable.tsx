import { AppLink } from '../../../parts/AppLink.tsx';
import { Actor } from '../../../parts/Actor.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Time } from '../../../parts/Time.tsx';
import { Grantee } from './Grantee.tsx';
import type { Grant, Grants } from './grantQueries.ts';
import { RemoveGrant } from './RemoveGrant.tsx';
import { ScopeText } from './ScopeText.tsx';
import classes from '../Access.module.css';

type Props = {
  label: string;
  grants: Grants<Grant>;
  /** What the page is about, which the table leaves out. */
  without?: 'who' | 'role';
  /** What has a column of its own: where the grant comes from. */
  source?: ((grant: Grant) => string) | undefined;
};

/** Grants: who has which role where. */
export function GrantTable({ label, grants, without, source }: Props) {
  const { items, names, isCut } = grants;
  return (
    <>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label={label}>
        <table className={classes.table}>
          <thead>
            <tr>
              {without !== 'who' && <th scope="col">Who</th>}
              {without !== 'role' && <th scope="col">Role</th>}
              <th scope="col">Where</th>
              {source && <th scope="col">By</th>}
              <th scope="col">Since</th>
              <th scope="col">Granted by</th>
              <th scope="col">
                <span className={classes.hidden}>Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map((grant) => (
              <tr key={grant.id}>
                {without !== 'who' && (
                  <td>
                    <Grantee grant={grant} names={names} />
                  </td>
                )}
                {without !== 'role' && (
                  <td>
                    <RecordLink id={grant.roleId} names={names} kind="roles" />
                  </td>
                )}
                <td>
                  <ScopeText grant={grant} names={names} />
                </td>
                {source && <td>{source(grant)}</td>}
                <td>
                  <AppLink to={recordPath(grant.id)}>
                    <Time value={grant.createdAt} />
                  </AppLink>
                </td>
                <td>
                  <Actor id={grant.createdBy} names={names} />
                </td>
                <td data-icons>
                  <RemoveGrant grant={grant} names={names} isIcon />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isCut && <p className={classes.muted}>The first {items.length} are shown.</p>}
    </>
  );
}
