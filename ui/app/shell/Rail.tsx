import { Badge } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Icon } from '../../parts/icons.tsx';
import { usePendingApprovals } from './usePendingApprovals.ts';
import { useNavigationEntries } from './useNavigationEntries.ts';
import classes from './Rail.module.css';

/** The pages that the user may read something on. */
export function Rail({ onNavigate }: { onNavigate?: () => void }) {
  const entries = useNavigationEntries();
  const pending = usePendingApprovals();
  return (
    <nav aria-label="Pages" className={classes.rail}>
      {entries.map(({ to, label, icon, badge }) => (
        <Link
          key={to}
          to={to}
          className={classes.entry}
          activeProps={{ 'aria-current': 'page' }}
          activeOptions={{ exact: to === '/', includeSearch: false }}
          onClick={onNavigate}
        >
          <Icon name={icon} size={18} />
          <span className={classes.label}>{label}</span>
          {badge === 'approvals' && pending > 0 && (
            <Badge size="sm" circle={pending < 10} aria-label={`${pending} to decide`}>
              {pending}
            </Badge>
          )}
        </Link>
      ))}
    </nav>
  );
}
