import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Time } from '../../parts/Time.tsx';
import { TOKENS_KEY } from './tokenQueries.ts';
import classes from './Account.module.css';

type Props = { opened: boolean; token: Schemas['Token']; onClose: () => void };

/** Ends a token for good. */
export function RevokeDialog({ opened, token, onClose }: Props) {
  const { id, name, lastUsedAt } = token;
  const queryClient = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => answer(api.DELETE('/api/auth/tokens/{id}', { params: { path: { id } } })),
    onSuccess: onClose,
    onSettled: () => queryClient.invalidateQueries({ queryKey: TOKENS_KEY }),
  });
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={`Revoke ${name}?`}
      confirm="Revoke token"
      danger
      onConfirm={() => revoke.mutate()}
      busy={revoke.isPending}
      problem={revoke.error}
    >
      <p className={classes.text}>
        The token stops working, and so does what was created with it: running jobs are cancelled,
        queued jobs fail, schedules skip their runs, and approval requests are not carried out. This
        cannot be undone.
      </p>
      <p className={classes.text}>
        {lastUsedAt === null ? (
          'It was never used.'
        ) : (
          <>
            It was last used <Time value={lastUsedAt} format="relative" />.
          </>
        )}
      </p>
    </ConfirmDialog>
  );
}
