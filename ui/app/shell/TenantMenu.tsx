import { Tooltip, UnstyledButton } from '@mantine/core';
import { useState, type ComponentPropsWithRef } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { useSession } from '../session/useSession.ts';
import { ClosedPart, lazyPart } from './lazyPart.tsx';
import classes from './TenantMenu.module.css';

const loadChoice = () => import('./TenantChoice.tsx');

const LABEL = 'Tenant that new records belong to';

const TenantChoice = lazyPart(loadChoice, {
  waiting: <Present />,
  Failed: ClosedPart,
});

/** The properties are those of the tooltip around it. */
function Present(props: ComponentPropsWithRef<'span'>) {
  const { tenant } = useSession();
  return (
    <span {...props} className={classes.only}>
      <Icon name="users" />
      {tenant}
    </span>
  );
}

/** The tenant that new records belong to, and the others of the user. The list of them is loaded when it is opened. */
export function TenantMenu() {
  const [isOpened, setOpened] = useState(false);
  const { tenant, tenants, isGateway } = useSession();
  if (isGateway || tenants?.length === 1)
    return (
      <Tooltip label={LABEL}>
        <Present />
      </Tooltip>
    );
  if (!isOpened)
    return (
      <Tooltip label={LABEL}>
        <UnstyledButton
          className={classes.choice}
          aria-label={`${LABEL}: ${tenant}`}
          aria-haspopup="listbox"
          onPointerEnter={() => void loadChoice().catch(() => undefined)}
          onClick={() => setOpened(true)}
        >
          <Present />
        </UnstyledButton>
      </Tooltip>
    );
  return (
    <div className={classes.choice}>
      <TenantChoice label={LABEL} onClose={() => setOpened(false)} />
    </div>
  );
}
