import { useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { useIdempotencyKeys } from '../../../app/idempotency.ts';
import { useSend } from '../../../app/useSend.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { ShownOnceGuard } from '../../../parts/ShownOnce.tsx';
import type { User } from './userQueries.ts';

type Props = {
  user: User;
  opened: boolean;
  onClose: () => void;
  onMade: (made: Schemas['UserWithPassword']) => void;
};

/** Makes a one-time password of a user, instead of the present password. */
export function ResetDialog({ user: { id, username }, opened, onClose, onMade }: Props) {
  const client = useQueryClient();
  // The cache of the query client must not have the password.
  const { send, busy, problem, reset } = useSend();
  const keys = useIdempotencyKeys();
  const run = async () => {
    // A repeat after an outage must not replace a password that may have been passed on.
    const made = await keys.once(id, (header) => {
      const params = { path: { id }, header };
      return answer(api.POST('/api/users/{id}/reset-password', { params, body: {} }));
    });
    onMade(made);
    void client.invalidateQueries({ queryKey: ['access'] });
  };
  return (
    <ConfirmDialog
      opened={opened}
      onClose={() => {
        reset();
        onClose();
      }}
      title={`Reset the password of ${username}?`}
      confirm="Reset password"
      danger
      onConfirm={() => void send(run)}
      busy={busy}
      problem={problem}
    >
      <ShownOnceGuard isNeeded={() => busy} />
      The present password stops working, and all sessions of the user end. API tokens stay valid.
      You get a one-time password to pass on; it is shown once.
    </ConfirmDialog>
  );
}
