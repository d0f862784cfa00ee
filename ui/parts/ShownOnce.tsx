import { Button } from '@mantine/core';
import { useId, useRef, type ReactNode } from 'react';
import { CopyButton } from './CopyButton.tsx';
import formClasses from './form/Form.module.css';
import { LeaveGuard } from './form/LeaveGuard.tsx';
import classes from './ShownOnce.module.css';

type Props = {
  /** The text; null if the answer with it was lost. */
  token: string | null;
  /** What it is called, and why it is not shown again. Default: a token. */
  what?: { noun: string; stored: string; lost: string } | undefined;
  /** How it is used: words, and the text to copy. */
  use?: { title: ReactNode; text: string; copy: string } | undefined;
  onDone: () => void;
  children?: ReactNode;
};

const TOKEN = {
  noun: 'token',
  stored: 'only a hash of it is stored',
  lost: 'The token exists, but the answer with its text was lost. Rotate it to get another text.',
};

/** Asks before the page is left while a text is made that is shown once, or while it is shown. */
export const ShownOnceGuard = ({ isNeeded }: { isNeeded: () => boolean }) => (
  <LeaveGuard hasChanges={isNeeded}>A secret is shown here that is not shown again.</LeaveGuard>
);

/** The text of a token or a secret, once. */
export function ShownOnce({ token, what = TOKEN, use, onDone, children }: Props) {
  const id = useId();
  const isStored = useRef(token === null);
  const { noun, stored, lost } = what;
  return (
    <div className={formClasses.form}>
      <ShownOnceGuard isNeeded={() => !isStored.current} />
      {token === null ? (
        <p className={formClasses.text} role="alert">
          {lost}
        </p>
      ) : (
        <div role="group" aria-labelledby={id}>
          <p className={formClasses.text} id={id}>
            <strong>Copy the {noun} now.</strong> It is not shown again: {stored}.
          </p>
          {/* In the order of Tab, so that it can be selected without a mouse. */}
          <pre className={classes.code} tabIndex={0} data-secret>
            {token}
          </pre>
        </div>
      )}
      {token !== null && (
        <div>
          <CopyButton value={token} label={`Copy ${noun}`} withText />
        </div>
      )}
      {children}
      {use && (
        <div>
          <p className={formClasses.text}>{use.title}</p>
          <pre className={classes.code}>{use.text}</pre>
        </div>
      )}
      <div className={formClasses.buttons} data-end>
        {use && <CopyButton value={use.text} label={use.copy} withText />}
        <Button
          onClick={() => {
            isStored.current = true;
            onDone();
          }}
        >
          {token === null ? 'Close' : 'I have stored it'}
        </Button>
      </div>
    </div>
  );
}
