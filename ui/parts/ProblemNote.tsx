import { Button } from '@mantine/core';
import { nounOf } from '../../domain/shared/nouns.ts';
import { CopyButton } from './CopyButton.tsx';
import { Exact } from './Exact.tsx';
import { Icon } from './icons.tsx';
import { useIsOutage } from './outage.tsx';
import {
  isOutage,
  isTemporary,
  isWorthRepeating,
  problemFields,
  type RecordConflict,
} from './problems.ts';
import { RecordLink } from './RecordLink.tsx';
import classes from './ProblemNote.module.css';

type Props = {
  /** A Problem of the API, or any error. */
  problem: unknown;
  /** Repeats what has failed. What a user has sent is sent again by its own button: see `RefusedNote`. */
  retry: (() => void) | undefined;
  /** Without the list of fields, where a form shows them. */
  withoutFields?: boolean;
  /** What was read before is shown: during an outage, that the frame speaks of it is enough. */
  hasData?: boolean;
};

/** What a change conflicts with. The other record is a link if the reader may read it. */
const Conflicts = ({ conflicts }: { conflicts: readonly RecordConflict[] }) =>
  conflicts.length > 0 && (
    <ul className={classes.errors}>
      {conflicts.map(({ pointer, message, resource, id }) => (
        <li key={`${pointer} ${id} ${message}`}>
          <Exact text={message} />
          {id !== null && resource !== null && (
            <>
              {': '}
              <RecordLink id={id} kind={resource} label={`open the ${nounOf(resource, 1)}`} />
            </>
          )}
        </li>
      ))}
    </ul>
  );

/** Why something failed: title, details, code, and the request id for those who read the server log. */
export function ProblemNote({ problem, retry, withoutFields = false, hasData = false }: Props) {
  const fields = problemFields(problem);
  const isSaid = useIsOutage() && isOutage(fields);
  if (isSaid && hasData) return null;
  if (isSaid && retry)
    return <p className={classes.waiting}>Not read yet: waiting for the server.</p>;
  const { title, detail, code, requestId, errors, conflicts = [], retryAfterSeconds } = fields;
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
        <Conflicts conflicts={conflicts} />
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
