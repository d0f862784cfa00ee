import { Alert, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatNumberOf } from '../../../parts/format.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { AskButton } from '../AskButton.tsx';
import { PlanPanel } from '../PlanPanel.tsx';
import type { Mutation } from '../usePlan.ts';
import { useBulk, type BulkProps } from './useBulk.ts';

type Props = BulkProps & {
  onClose: () => void;
  verb: 'Change' | 'Delete';
  changes: readonly Mutation[];
  /** What there is to say before anything is planned. */
  nothing: string;
  children?: ReactNode;
};

/** Shows what changes of several records do, record by record, before all of them are made or asked for. */
export function BulkDialog({
  resource,
  all,
  ids,
  versions,
  changed,
  takePresent,
  where,
  onDone,
  onClose,
  ...props
}: Props) {
  const { verb, changes, nothing, children } = props;
  const { plan, reason, apply, isBusy, error } = useBulk(changes, { versions, onDone });
  const title = `${verb} ${formatNumberOf(ids.length, resource.singular, resource.plural)}`;
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={title}
      confirm={title}
      danger={verb === 'Delete'}
      reason={reason}
      onConfirm={apply}
      busy={isBusy}
      problem={error}
    >
      {children}
      {changed > 0 && (
        <Alert color="yellow" role="status">
          <Group gap="sm">
            <Text size="sm">
              Others have changed {formatNumberOf(changed, resource.singular, resource.plural)}{' '}
              since you chose them.
            </Text>
            <Button variant="default" onClick={takePresent} disabled={isBusy}>
              Go on with them as they are now
            </Button>
          </Group>
        </Alert>
      )}
      <PlanPanel plan={plan} all={all} nothing={nothing} />
      {/* A request is planned again when it is decided. */}
      <AskButton
        mutation={{ mutations: changes }}
        title={title}
        where={where}
        reason={reason}
        onAsked={onClose}
      />
    </ConfirmDialog>
  );
}
