import type { Names } from '../../../parts/names.ts';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { removeGrant, type Grant } from './grantQueries.ts';
import { grantText } from './grantText.ts';

type Props = {
  grant: Grant;
  names: Names | undefined;
  isIcon?: boolean;
  onDone?: () => unknown;
};

/** Takes a role away. */
export function RemoveGrant({ grant, names, isIcon = false, onDone }: Props) {
  const { tenantId, siteId, deviceId } = grant;
  return (
    <ConfirmedChange
      permission="rbac:write"
      where={{ tenantId, siteId, deviceId }}
      icon="trash"
      isIcon={isIcon}
      label={isIcon ? `Remove: ${grantText(grant, names)}` : 'Remove'}
      title="Remove this grant?"
      confirm="Remove"
      danger
      run={() => removeGrant(grant)}
      onDone={onDone}
    >
      Now {grantText(grant, names)}. Without it, what this role allows ends immediately, in open
      sessions too; jobs and schedules that need it no longer run.
    </ConfirmedChange>
  );
}
