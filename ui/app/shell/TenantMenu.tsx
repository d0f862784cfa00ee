import { Tooltip } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { useSession } from '../session/useSession.ts';
import classes from './TenantMenu.module.css';

const TenantChoice = lazy(() => import('./TenantChoice.tsx'));

const LABEL = 'Tenant that new records belong to';

/** The tenant that new records belong to, and the others of the user. */
export function TenantMenu() {
  const { tenant, tenants, isGateway } = useSession();
  const text = (
    <span className={classes.only}>
      <Icon name="users" />
      {tenant}
    </span>
  );
  if (isGateway || tenants?.length === 1) return <Tooltip label={LABEL}>{text}</Tooltip>;
  return (
    <div className={classes.choice}>
      <Suspense fallback={text}>
        <TenantChoice label={LABEL} />
      </Suspense>
    </div>
  );
}
