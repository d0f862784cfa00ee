import { Link } from '@tanstack/react-router';
import { useNavigationEntries } from './useNavigationEntries.ts';
import classes from './Rail.module.css';

/** The pages that the user may read something on. */
export function Rail({ onNavigate }: { onNavigate?: () => void }) {
  const entries = useNavigationEntries();
  return (
    <nav aria-label="Pages" className={classes.rail}>
      {entries.map(({ to, label, icon: Icon }) => (
        <Link
          key={to}
          to={to}
          className={classes.entry}
          activeProps={{ 'aria-current': 'page' }}
          activeOptions={{ exact: to === '/', includeSearch: false }}
          onClick={onNavigate}
        >
          <Icon size={18} />
          {label}
        </Link>
      ))}
    </nav>
  );
}
