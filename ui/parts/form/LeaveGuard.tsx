import { useBlocker } from '@tanstack/react-router';
import { ConfirmDialog } from '../ConfirmDialog.tsx';

type Props = {
  /** Asked when the page would be left: whether something would be lost. */
  hasChanges: () => boolean;
};

/** Asks before a page with changes is left that are not saved. */
export function LeaveGuard({ hasChanges }: Props) {
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
      What you have typed is not saved.
    </ConfirmDialog>
  );
}
