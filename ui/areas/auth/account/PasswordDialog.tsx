import { useQueryClient } from '@tanstack/react-query';
import { PasswordForm } from '../../../app/session/PasswordForm.tsx';
import { SESSIONS_KEY } from './queries.ts';
import { Dialog } from '../../../parts/Dialog.tsx';
import classes from '../../../app/account/Account.module.css';

type Props = { opened: boolean; onClose: () => void; onChanged: () => void };

/** Changes the password of a local account. */
export function PasswordDialog({ opened, onClose, onChanged }: Props) {
  const queryClient = useQueryClient();
  const changed = () => {
    onChanged();
    void queryClient.invalidateQueries({ queryKey: SESSIONS_KEY });
  };
  return (
    <Dialog opened={opened} onClose={onClose} title="Change password">
      <div className={classes.form}>
        <p className={classes.text}>This ends your other sessions. API tokens stay valid.</p>
        <PasswordForm label="Current password" onChanged={changed} />
      </div>
    </Dialog>
  );
}
