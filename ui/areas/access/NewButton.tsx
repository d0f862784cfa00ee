import { Button } from '@mantine/core';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';

type Props = {
  to: string;
  permission: string;
  children: string;
  variant?: 'default' | 'filled';
  search?: Readonly<Record<string, string>>;
};

/** Opens the form for a new record; hidden from those who may create none. */
export function NewButton({ to, permission, children, variant = 'filled', search = {} }: Props) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere(permission)) return null;
  return (
    <Button
      variant={variant}
      renderRoot={(props) => <PageLink {...props} to={to} search={search} />}
      leftSection={<Icon name="plus" size={14} />}
    >
      {children}
    </Button>
  );
}
