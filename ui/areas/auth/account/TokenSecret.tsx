import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';
import type { Schemas } from '../../../app/api.ts';
import { consoleSettings } from '../../../app/settings.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { exampleOf } from './tokenText.ts';
import classes from './Account.module.css';

type Props = {
  made: Schemas['TokenWithSecret'];
  onDone: () => void;
  children?: ReactNode;
};

/** The text of a token, once. */
export function TokenSecret({ made: { token }, onDone, children }: Props) {
  const { data: settings } = useQuery(consoleSettings);
  const example = exampleOf(settings?.origin ?? location.origin);
  const id = useId();
  return (
    <div className={classes.form}>
      {token === null ? (
        <p className={classes.text} role="alert">
          The token exists, but the answer with its text was lost. Rotate it to get another text.
        </p>
      ) : (
        <div role="group" aria-labelledby={id}>
          <p className={classes.text} id={id}>
            <strong>Copy the token now.</strong> It is not shown again: only a hash of it is stored.
          </p>
          {/* In the order of Tab, so that it can be selected without a mouse. */}
          <pre className={classes.code} tabIndex={0} data-secret>
            {token}
          </pre>
        </div>
      )}
      {token !== null && (
        <div>
          <CopyButton value={token} label="Copy token" withText />
        </div>
      )}
      {children}
      <div>
        <p className={classes.text}>A first request, with the token in the variable TOKEN:</p>
        <pre className={classes.code}>{example}</pre>
      </div>
      <div className={classes.buttons}>
        <CopyButton value={example} label="Copy request" withText />
        <Button onClick={onDone}>{token === null ? 'Close' : 'I have stored it'}</Button>
      </div>
    </div>
  );
}
