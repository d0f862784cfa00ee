import { useSession } from '../../../app/session/useSession.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { Identity } from './Identity.tsx';
import { Roles } from './Roles.tsx';
import { Sessions } from './Sessions.tsx';
import { Tokens } from './Tokens.tsx';
import classes from '../../../app/account/Account.module.css';

/** Who the user is, what they may do and why, their sessions and their tokens. */
export function AccountPage() {
  const { isGateway } = useSession();
  return (
    <div className={classes.page}>
      <h1 className={classes.title}>Account</h1>
      <Identity />
      <Roles />
      {isGateway ? (
        <Empty
          kind="notSetUp"
          title="A gateway signs you in"
          detail="It authenticates every request, so there are no sessions, no password and no tokens of your own here. A service account can have tokens."
        />
      ) : (
        <>
          <Tokens />
          <Sessions />
        </>
      )}
    </div>
  );
}
