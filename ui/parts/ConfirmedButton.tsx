import { useMutation } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { ConfirmDialog } from './ConfirmDialog.tsx';
import type { IconName } from './icons.tsx';
import { IconButton, PermissionButton } from './PermissionButton.tsx';
import { problemFields } from './problems.ts';
import { useAsked } from './useAsked.ts';
import type { Where } from './permissions.tsx';
import type { Named } from './typedName.ts';

export type ConfirmedButtonProps = {
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
  /** What is to be named first. */
  typed?: Named;
  /** What happens then, in words. */
  children: ReactNode;
  run: () => Promise<unknown>;
  /** Called when it is done. */
  onDone?: () => unknown;
  /** Called when it is done, and after a failure: what is shown may be out of date. */
  onSettled: () => unknown;
};

/** A button for what is asked about first. */
export function ConfirmedButton(props: ConfirmedButtonProps) {
  const { permission, where, icon, label, isIcon = false, reason } = props;
  const question = useAsked(props);
  const { isOpen, close } = question;
  const [isRefused, setRefused] = useState(false);
  // After a 412 the question goes on with the present record, unless that changes what is asked.
  const asked = isRefused && props.confirm === question.asked.confirm ? props : question.asked;
  const ask = () => {
    setRefused(false);
    question.ask();
  };
  const action = useMutation({
    mutationFn: asked.run,
    onSuccess: async () => {
      close();
      await asked.onDone?.();
    },
    onError: (error) => {
      if (problemFields(error).status === 412) setRefused(true);
    },
    onSettled: () => asked.onSettled(),
  });
  const shared = { permission, where, icon, reason, onClick: ask };
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
          close();
          action.reset();
        }}
        title={asked.title}
        confirm={asked.confirm}
        danger={asked.danger ?? false}
        typed={asked.typed}
        onConfirm={() => action.mutate()}
        busy={action.isPending}
        problem={action.error}
      >
        {asked.children}
      </ConfirmDialog>
    </>
  );
}
