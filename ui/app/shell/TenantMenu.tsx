import { Tooltip, UnstyledButton } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { useSession } from '../session/useSession.ts';
import classes from './TenantMenu.module.css';

const loadChoice = () => import('./TenantChoice.tsx');
const TenantChoice = lazy(loadChoice);

const LABEL = 'Tenant that new records belong to';

/** The tenant that new records belong to, and the others of the user. The list of them is loaded when it is opened. */
export function TenantMenu() {
  const [isOpened, setOpened] = useState(false);
  const { tenant, tenants, isGateway } = useSession();
  const text = (
    <span className={classes.only}>
      <Icon name="users" />
      {tenant}
    </span>
  );
  if (isGateway || tenants?.length === 1) return <Tooltip label={LABEL}>{text}</Tooltip>;
  if (!isOpened)
    return (
      <Tooltip label={LABEL}>
        <UnstyledButton
          className={classes.choice}
          aria-label={`${LABEL}: ${tenant}`}
          aria-haspopup="listbox"
          onPointerEnter={() => void loadChoice()}
          onClick={() => setOpened(true)}
        >
          {text}
        </UnstyledButton>
      </Tooltip>
    );
  return (
    <div className={classes.choice}>
      <Suspense fallback={text}>
        <TenantChoice label={LABEL} />
      </Suspense>
    </div>
  );
}
