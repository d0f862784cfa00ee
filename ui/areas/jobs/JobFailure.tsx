import type { Schemas } from '../../app/api.ts';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { Job } from './jobQueries.ts';
import classes from './Jobs.module.css';

/** Why a job, or its latest attempt, has failed. The texts may come from other servers. */
export function JobFailure({ job: { status, error } }: { job: Pick<Job, 'status' | 'error'> }) {
  if (!error) return null;
  const hasFailed = status === 'failed';
  return (
    <div className={classes.failure} role={hasFailed ? 'alert' : 'status'}>
      <h2 className={classes.failureTitle}>
        {hasFailed ? 'Failed' : 'The latest attempt has failed'} <code>{error.code}</code>
      </h2>
      <div className={classes.failureText} tabIndex={0} role="region" aria-label="Error message">
        <Exact text={error.message} />
      </div>
      {error.response && <Response response={error.response} />}
    </div>
  );
}

function Response({ response }: { response: Schemas['FailedResponse'] }) {
  const { status, contentType, body, truncated } = response;
  return (
    <div>
      <div className={classes.bar}>
        <span>
          The server answered <strong>{status}</strong>
          {contentType !== null && <> with {contentType}</>}
        </span>
        <CopyButton value={body} label="Copy the answer" />
      </div>
      {body !== '' && (
        <pre className={classes.response} tabIndex={0} aria-label="Answer of the server">
          <Exact text={body} />
          {truncated && ' …'}
        </pre>
      )}
    </div>
  );
}
