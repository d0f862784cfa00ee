import type { Schemas } from '../api.ts';
import type { Names } from '../../parts/names.ts';
import { IconButton } from '../../parts/PermissionButton.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { useNow } from '../../parts/useNow.ts';
import type { Owner, TokenAction } from './fields.ts';
import { expiresSoon, limitTexts } from './tokenText.ts';
import classes from './Account.module.css';

type Token = Schemas['Token'];
type Props = {
  token: Token;
  names: Names;
  owner: Owner;
  /** Why the user may not do something with it; undefined if the user may. */
  whyNot?: ((action: TokenAction) => string | undefined) | undefined;
  onAction: (action: TokenAction) => void;
};

/** A token in the list: what it may do, its use and its end. */
export function TokenItem({ token, names, owner, ...actions }: Props) {
  const { id, name, status, lastUsedAt, lastUsedAddress } = token;
  const now = useNow();
  return (
    <li className={classes.item}>
      <div>
        <div className={classes.name} title={id}>
          {name}
          {expiresSoon(token, now) ? (
            <StatusBadge status="stale" label="Expires soon" />
          ) : (
            status !== 'active' && <StatusBadge status={status} />
          )}
        </div>
        <div className={classes.note}>{limitTexts(token, names, owner).join(' · ')}</div>
      </div>
      <div className={classes.fact}>
        <div>
          {lastUsedAt === null ? 'Never used' : 'Used '}
          {lastUsedAt !== null && <Time value={lastUsedAt} format="relative" />}
        </div>
        {lastUsedAddress !== null && <div className={classes.note}>from {lastUsedAddress}</div>}
      </div>
      <End token={token} now={now} />
      <div className={classes.actions}>
        <Actions token={token} {...actions} />
      </div>
    </li>
  );
}

function End({ token, now }: { token: Token; now: number }) {
  const { revokedAt, disabledAt, expiresAt, previousValidUntil } = token;
  return (
    <div className={classes.fact}>
      {revokedAt !== null ? (
        <div>
          Revoked <Time value={revokedAt} />
        </div>
      ) : (
        <div>
          {Date.parse(expiresAt) < now ? 'Expired ' : 'Expires '}
          <Time value={expiresAt} format="relative" />
        </div>
      )}
      {disabledAt !== null && revokedAt === null && (
        <div className={classes.note}>Disabled: not used for 90 days</div>
      )}
      {previousValidUntil !== null && Date.parse(previousValidUntil) > now && (
        <div className={classes.note}>
          Former secret valid until <Time value={previousValidUntil} />
        </div>
      )}
    </div>
  );
}

function Actions({ token, whyNot, onAction }: Omit<Props, 'names' | 'owner'>) {
  const { name, status } = token;
  if (status === 'revoked') return null;
  const inactive = status === 'active' ? undefined : `The token is ${status}.`;
  return (
    <>
      <IconButton
        icon="edit"
        label={`Rename or narrow ${name}`}
        reason={whyNot?.('narrow')}
        onClick={() => onAction('narrow')}
      />
      <IconButton
        icon="refresh"
        label={`Rotate ${name}`}
        reason={whyNot?.('rotate') ?? inactive}
        onClick={() => onAction('rotate')}
      />
      <IconButton
        icon="trash"
        label={`Revoke ${name}`}
        reason={whyNot?.('revoke')}
        onClick={() => onAction('revoke')}
      />
    </>
  );
}
