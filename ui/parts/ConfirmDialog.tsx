import { Button, TextInput } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { Dialog, useBusyDialog } from './Dialog.tsx';
import { RefusedNote } from './RefusedNote.tsx';
import { typedName, type Named } from './typedName.ts';
import classes from './ConfirmDialog.module.css';

type Props = {
  opened: boolean;
  onClose: () => void;
  title: string;
  children?: ReactNode;
  /** The verb of the button: `Cancel job`. */
  confirm: string;
  /** Runs when confirmed. The dialog stays while `busy`, and shows `problem`. */
  onConfirm: () => void;
  busy?: boolean | undefined;
  problem?: unknown;
  /** A record whose name is to be typed first. */
  typed?: Named | undefined;
  /** Why it cannot be confirmed now. */
  reason?: string | undefined;
  /** For what cannot be taken back. */
  danger?: boolean | undefined;
  /** Text of the other button. */
  cancel?: string | undefined;
};

type TypedProps = { wanted: string; text: string; onText: (text: string) => void };

function TypedText({ wanted, text, onText }: TypedProps) {
  return (
    <TextInput
      data-autofocus
      label={
        <>
          Type <code>{wanted}</code> to confirm
        </>
      }
      value={text}
      onChange={(event) => onText(event.currentTarget.value)}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

type ContentProps = Omit<Props, 'title'>;

function Content(props: ContentProps) {
  const { opened, children, confirm, onConfirm, onClose, busy = false } = props;
  const { problem, reason, danger, cancel } = props;
  const typed = props.typed && typedName(props.typed);
  const [text, setText] = useState('');
  useBusyDialog(busy);
  const isReady = reason === undefined && (typed === undefined || text.trim() === typed);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        // A dialog that is closed is still there while it fades: a second click must not confirm again.
        if (opened && isReady && !busy) onConfirm();
      }}
    >
      <div className={classes.body}>{children}</div>
      {typed !== undefined && <TypedText wanted={typed} text={text} onText={setText} />}
      {problem !== undefined && problem !== null && (
        <div className={classes.problem}>
          <RefusedNote problem={problem} />
        </div>
      )}
      <div className={classes.buttons}>
        {/* The focus starts on the harmless button: Enter by mistake does nothing. */}
        <Button
          variant="default"
          onClick={onClose}
          disabled={busy}
          {...(typed === undefined && { 'data-autofocus': true })}
        >
          {cancel ?? 'Back'}
        </Button>
        <Button
          type="submit"
          loading={busy}
          disabled={!isReady}
          {...(danger === true && { color: 'red.8' })}
        >
          {confirm}
        </Button>
      </div>
    </form>
  );
}

/** Asks before something is done. The focus stays in the dialog and returns to where it was. */
export function ConfirmDialog({ opened, title, ...props }: Props) {
  return (
    <Dialog opened={opened} onClose={props.onClose} title={title} size="md">
      <Content {...props} opened={opened} />
    </Dialog>
  );
}
