import { useBlocker } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ConfirmDialog } from '../ConfirmDialog.tsx';
import { useUnsaved } from './unsaved.ts';

type Props = {
  /** Asked when the page would be left: whether something would be lost. */
  hasChanges: () => boolean;
  /** What would be lost. Default: what is typed. */
  children?: ReactNode;
};

/** Asks before a page with changes is left that are not saved. */
export function LeaveGuard({ hasChanges, children = 'What you have typed is not saved.' }: Props) {
  useUnsaved(hasChanges);
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && hasChanges(),
    enableBeforeUnload: hasChanges,
    withResolver: true,
  });
  return (
    <ConfirmDialog
      opened={status === 'blocked'}
      onClose={() => reset?.()}
      title="Leave this page?"
      confirm="Leave"
      cancel="Stay"
      danger
      onConfirm={() => proceed?.()}
    >
      {children}
    </ConfirmDialog>
  );
}
