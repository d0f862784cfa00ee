import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import type { IconName } from '../../parts/icons.tsx';
import { IconButton, PermissionButton } from '../../parts/PermissionButton.tsx';
import type { Where } from '../../parts/permissions.tsx';

type Props = {
  permission: string;
  where: Where;
  icon: IconName;
  label: string;
  /** Only the icon is shown, as in a row of a table. */
  isIcon?: boolean;
  reason?: string | undefined;
  title: string;
  confirm: string;
  danger?: boolean;
  typed?: string;
  /** What happens then, in words. */
  children: ReactNode;
  run: () => Promise<unknown>;
  /** Called when it is done. */
  onDone?: () => unknown;
};

/** A button for what is asked about first. */
export function ConfirmedButton(props: Props) {
  const { permission, where, icon, label, isIcon = false, reason, run, onDone } = props;
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const action = useMutation({
    mutationFn: run,
    onSuccess: async () => {
      setOpen(false);
      await onDone?.();
    },
    // Also after a failure: what is shown may be out of date.
    onSettled: () => client.invalidateQueries({ queryKey: ['access'] }),
  });
  const shared = { permission, where, icon, reason, onClick: () => setOpen(true) };
  return (
    <>
      {isIcon ? (
        <IconButton {...shared} label={label} />
      ) : (
        <PermissionButton {...shared} variant="default">
          {label}
        </PermissionButton>
      )}
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          action.reset();
        }}
        title={props.title}
        confirm={props.confirm}
        danger={props.danger ?? false}
        typed={props.typed}
        onConfirm={() => action.mutate()}
        busy={action.isPending}
        problem={action.error}
      >
        {props.children}
      </ConfirmDialog>
    </>
  );
}
