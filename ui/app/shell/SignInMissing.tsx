import { Button } from '@mantine/core';
import type { FailedProps } from './lazyPart.tsx';
import classes from './SignInMissing.module.css';

/** Instead of the sign-in over the page of an expired session, if it cannot be loaded. The page stays. */
export function SignInMissing({ retry }: FailedProps) {
  return (
    <div className={classes.bar} role="alert">
      <span>
        <strong>Your session has expired.</strong> The sign-in could not be loaded from the server.
        Nothing on the page is lost: sign in on another tab, and this one continues.
      </span>
      <span className={classes.buttons}>
        <Button variant="default" onClick={retry}>
          Try again
        </Button>
        <Button component="a" href="/sign-in" target="_blank" rel="noopener">
          Sign in on another tab
        </Button>
      </span>
    </div>
  );
}
