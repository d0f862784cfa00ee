import { Button } from '@mantine/core';
import { PageLink } from '../PageLink.tsx';
import type { ReactNode } from 'react';
import { PermissionButton } from '../PermissionButton.tsx';
import type { Where } from '../permissions.tsx';
import { RefusedNote } from '../RefusedNote.tsx';
import classes from './Form.module.css';

type Props = {
  /** Why saving has failed. */
  problem: unknown;
  /** Pointers of the fields that show what is wrong with them. */
  shown: readonly string[];
  onSubmit: () => void;
  busy: boolean;
  /** The text of the button. */
  submit: string;
  permission: string;
  where: Where;
  /** Why it cannot be saved now. */
  reason?: string | undefined;
  /** Other things that can be done with what is typed. */
  more?: ReactNode;
  /** The path of the page before. */
  back: string;
  children: ReactNode;
};

/** The form of a record on a page of its own: its fields, what is wrong, and the button that saves. */
export function RecordForm(props: Props) {
  const { problem, shown, onSubmit, busy, submit, permission, where, reason, more, back } = props;
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) onSubmit();
      }}
    >
      <RefusedNote problem={problem} shown={shown} />
      {props.children}
      <div className={classes.buttons}>
        <PermissionButton
          type="submit"
          permission={permission}
          where={where}
          reason={reason}
          loading={busy}
        >
          {submit}
        </PermissionButton>
        {more}
        <Button variant="default" renderRoot={(root) => <PageLink {...root} to={back} />}>
          Back
        </Button>
      </div>
    </form>
  );
}
