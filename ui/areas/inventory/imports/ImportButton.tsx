import { Button } from '@mantine/core';
import { Icon } from '../../../parts/icons.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';

type Props = { resource?: string | undefined; variant?: 'default' | 'filled' };

/** Opens the form that sends a file; hidden from those who may write nothing. */
export function ImportButton({ resource, variant = 'default' }: Props) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('inventory:write')) return null;
  return (
    <Button
      variant={variant}
      renderRoot={(props) => (
        <PageLink {...props} to="/inventory/imports/new" search={{ resource }} />
      )}
      leftSection={<Icon name="upload" size={14} />}
    >
      Import
    </Button>
  );
}
