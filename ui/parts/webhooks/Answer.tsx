import { isAccepted, type Outcome } from './answer.ts';
import { Icon } from '../icons.tsx';
import classes from './Webhooks.module.css';

/** What an endpoint has answered to an attempt: its status, or the code of the error. */
export function Answer({ outcome }: { outcome: Outcome | null | undefined }) {
  const { httpStatus = null, errorCode = null } = outcome ?? {};
  if (!outcome || (httpStatus === null && errorCode === null))
    return <span className={classes.muted}>–</span>;
  return (
    <span className={classes.answer}>
      <Icon name={isAccepted(outcome) ? 'check' : 'x'} size={12} />
      {httpStatus ?? <code>{errorCode}</code>}
    </span>
  );
}
