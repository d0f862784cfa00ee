import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { expiringQuery } from '../../../app/account/tokenQueries.ts';
import { TokenSection } from '../../../app/account/TokenSection.tsx';
import { useSession } from '../../../app/session/useSession.ts';
import { Time } from '../../../parts/Time.tsx';
import classes from '../../../app/account/Account.module.css';

const route = getRouteApi('/frame/account');

/** The user's own API tokens. */
export function Tokens() {
  const { user } = useSession();
  const { tokens: status = 'active' } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <TokenSection
      accountId={user.id}
      owner="you"
      status={status}
      onStatus={(value) =>
        void navigate({ search: value === 'active' ? {} : { tokens: value }, replace: true })
      }
      newButton={(create) => <Button onClick={create}>New token</Button>}
      empty="A token is for your scripts. It may do at most what you may do. For programs that must keep working when you leave, use a service account."
    >
      <ExpiryWarning />
    </TokenSection>
  );
}

/** Says ahead which tokens expire, since what uses them stops. */
function ExpiryWarning() {
  const { user } = useSession();
  const { data } = useQuery(expiringQuery(user.id));
  if (data === undefined || data.items.length === 0) return null;
  return (
    <div className={classes.warning} role="status">
      <strong>Programs that use these tokens will stop working.</strong> Create others and replace
      these: a rotated token keeps its expiry.
      <ul>
        {data.items.map(({ id, name, expiresAt }) => (
          <li key={id}>
            {name} expires <Time value={expiresAt} format="relative" />
          </li>
        ))}
        {data.nextCursor !== null && <li>and others</li>}
      </ul>
    </div>
  );
}
