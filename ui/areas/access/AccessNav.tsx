import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ACCESS_VIEWS, type AccessView } from './accessViews.ts';
import classes from './Access.module.css';

/** The lists of the area that the user may read something of. */
export function AccessNav({ view }: { view: AccessView }) {
  const { canAnywhere } = usePermissions();
  const shown = ACCESS_VIEWS.filter(({ permissions }) => permissions.some(canAnywhere));
  return (
    <nav className={classes.nav} aria-label="Access">
      {shown.map(({ to, label }) => (
        <PageLink key={to} to={to} className={classes.view} current={to === view}>
          {label}
        </PageLink>
      ))}
    </nav>
  );
}
