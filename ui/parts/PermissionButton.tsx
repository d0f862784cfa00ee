import { ActionIcon, Button, Tooltip, type ButtonProps } from '@mantine/core';
import type { ComponentProps, ComponentPropsWithRef, MouseEvent, ReactNode } from 'react';
import { Icon, type IconName } from './icons.tsx';
import { usePermissions, type Where } from './permissions.tsx';

type Shared = {
  onClick?: ((event: MouseEvent<HTMLButtonElement>) => void) | undefined;
  /** Why it cannot be used now, for another reason than permissions. */
  reason?: string | undefined;
  loading?: boolean | undefined;
  icon?: IconName | undefined;
  type?: 'button' | 'submit' | undefined;
  /** The id of the form that it sends. */
  form?: string | undefined;
};

type ReasonedProps = Shared &
  Pick<ButtonProps, 'variant' | 'color'> & {
    children: ReactNode;
  };

/** A button that is disabled while it sends would lose the focus, and a dialog could not return it. */
const focusable = (props: ComponentProps<'button'>) => <button {...props} disabled={false} />;

/**
 * A button that may be unusable for a reason. It stays in the order of Tab, so that the reason is
 * found with the keyboard too, and does nothing.
 */
export function ReasonButton(props: ReasonedProps) {
  const { onClick, reason, loading, icon, children, type, ...others } = props;
  const isOff = reason !== undefined;
  const button = (
    <Button
      {...others}
      type={isOff ? 'button' : (type ?? 'button')}
      leftSection={icon && <Icon name={icon} size={14} />}
      data-disabled={isOff || undefined}
      aria-disabled={isOff || loading === true || undefined}
      aria-busy={loading}
      {...(loading !== undefined && { loading, renderRoot: focusable })}
      onClick={(event) => {
        if (isOff || loading === true) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {children}
    </Button>
  );
  if (!isOff) return button;
  return (
    <Tooltip label={reason} multiline maw={320}>
      {button}
    </Tooltip>
  );
}

type PermissionProps = ReasonedProps & {
  permission: string;
  /** Where the action would take effect. Default: the tenant of the session. */
  where?: Where | undefined;
};

/**
 * A button for what needs a permission: hidden from those who hold it nowhere, disabled with the reason
 * for those who hold it elsewhere.
 */
export function PermissionButton({ permission, where, reason, ...props }: PermissionProps) {
  const { canAnywhere, whyNot } = usePermissions();
  if (!canAnywhere(permission)) return null;
  return <ReasonButton {...props} reason={whyNot(permission, where) ?? reason} />;
}

type IconButtonProps = Omit<Shared, 'form' | 'type'> &
  // A menu that it opens says so on the button.
  Pick<
    ComponentPropsWithRef<'button'>,
    'ref' | 'id' | 'aria-haspopup' | 'aria-expanded' | 'aria-controls'
  > & {
    icon: IconName;
    /** The name of the action; it is the tooltip too. */
    label: string;
    permission?: string | undefined;
    where?: Where | undefined;
    pressed?: boolean | undefined;
  };

/** A button that is only an icon, with a name, a tooltip and, if it is unusable, the reason. */
export function IconButton(props: IconButtonProps) {
  const { icon, label, onClick, reason, loading, permission, where, pressed, ...rest } = props;
  const { canAnywhere, whyNot } = usePermissions();
  if (permission !== undefined && !canAnywhere(permission)) return null;
  const why = (permission === undefined ? undefined : whyNot(permission, where)) ?? reason;
  const isOff = why !== undefined;
  return (
    <Tooltip label={why ?? label} multiline maw={320}>
      <ActionIcon
        {...rest}
        size={28}
        aria-label={isOff ? `${label}. ${why}` : label}
        aria-pressed={pressed}
        variant={pressed === true ? 'light' : 'subtle'}
        loading={loading ?? false}
        data-disabled={isOff || undefined}
        aria-disabled={isOff || undefined}
        onClick={(event) => {
          if (isOff) event.preventDefault();
          else onClick?.(event);
        }}
      >
        <Icon name={icon} size={16} />
      </ActionIcon>
    </Tooltip>
  );
}
