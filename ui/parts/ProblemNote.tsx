import { Button } from '@mantine/core';
import { CopyButton } from './CopyButton.tsx';
import { Exact } from './Exact.tsx';
import { Icon } from './icons.tsx';
import { useIsOutage } from './outage.tsx';
import { isOutage, isTemporary, isWorthRepeating, problemFields } from './problems.ts';
import classes from './ProblemNote.module.css';

type Props = {
  /** A Problem of the API, or any error. */
  problem: unknown;
  /** Repeats what has failed. */
  retry?: (() => void) | undefined;
  /** Without the list of fields, where a form shows them. */
  withoutFields?: boolean;
  /** What was read before is shown: during an outage, that the frame speaks of it is enough. */
  hasData?: boolean;
};

/** Why something failed: title, details, code, and the request id for those who read the server log. */
export function ProblemNote({ problem, retry, withoutFields = false, hasData = false }: Props) {
  const fields = problemFields(problem);
  const isSaid = useIsOutage() && isOutage(fields);
  if (isSaid && hasData) return null;
  if (isSaid && retry)
    return <p className={classes.waiting}>Not read yet: waiting for the server.</p>;
  const { title, detail, code, requestId, errors, retryAfterSeconds } = fields;
  return (
    <div className={classes.note} role="alert" data-tone={isTemporary(fields) ? 'warning' : 'bad'}>
      <span className={classes.icon}>
        <Icon name="alertTriangle" size={16} />
      </span>
      <div className={classes.body}>
        <strong className={classes.title}>{title}</strong>
        {detail !== '' && (
          <div className={classes.detail}>
            <Exact text={detail} />
          </div>
        )}
        {!withoutFields && errors.length > 0 && (
          <ul className={classes.errors}>
            {errors.map((error) => (
              <li key={`${error.pointer} ${error.detail}`}>
                <code>{error.pointer || '/'}</code> <Exact text={error.detail} />
              </li>
            ))}
          </ul>
        )}
        {retryAfterSeconds !== undefined && (
          <div className={classes.detail}>Try again in {retryAfterSeconds} s.</div>
        )}
        <div className={classes.facts}>
          <span>
            Code <code>{code}</code>
          </span>
          {requestId !== undefined && (
            <span className={classes.request}>
              Request <code>{requestId}</code>
              <CopyButton value={requestId} label="Copy request id" />
            </span>
          )}
        </div>
      </div>
      {retry && isWorthRepeating(fields) && (
        <Button variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}
