import { Dialog } from '../../../parts/Dialog.tsx';
import formClasses from '../../../parts/form/Form.module.css';
import { ShownOnce } from '../../../parts/ShownOnce.tsx';

const PASSWORD = {
  noun: 'password',
  stored: 'only a hash of it is stored',
  lost: 'The account is changed, but the answer with its password was lost. Reset the password to get another one.',
};

type Props = {
  username: string;
  /** Null if the answer with it was lost. */
  password: string | null;
  onDone: () => void;
};

/** The one-time password of a user, until the dialog is closed with its button. */
export function OneTimePassword({ username, password, onDone }: Props) {
  return (
    <Dialog
      opened
      onClose={() => undefined}
      title={`One-time password of ${username}`}
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
    >
      <ShownOnce token={password} what={PASSWORD} onDone={onDone}>
        <p className={formClasses.text}>
          Pass it on to the user. It works for 72 hours, and must be changed at the first login.
        </p>
      </ShownOnce>
    </Dialog>
  );
}
