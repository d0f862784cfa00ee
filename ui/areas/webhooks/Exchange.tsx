import type { Schemas } from '../../app/api.ts';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { Exact } from '../../parts/Exact.tsx';
import classes from './Webhooks.module.css';

type Props = {
  attempt: Pick<
    Schemas['DeliveryAttempt'],
    'durationMs' | 'httpStatus' | 'error' | 'requestHeaders' | 'responseBody' | 'responseTruncated'
  >;
};

/** What was sent to an endpoint, and what it answered: always as text, since the endpoint controls it. */
export function Exchange({ attempt }: Props) {
  const { durationMs, httpStatus, error, requestHeaders, responseBody, responseTruncated } =
    attempt;
  return (
    <div className={classes.stack}>
      <DescriptionList
        items={[
          { label: 'Status', value: httpStatus === null ? 'No answer' : String(httpStatus) },
          { label: 'Took', value: durationMs === null ? null : <Duration ms={durationMs} /> },
          {
            label: 'Error',
            value: error ? (
              <>
                <code>{error.code}</code> <Exact text={error.message} />
              </>
            ) : undefined,
          },
        ]}
      />
      {responseBody !== null && (
        <div>
          <h4 className={classes.small}>Answer</h4>
          {responseBody === '' ? (
            <p className={classes.muted}>An empty body.</p>
          ) : (
            <pre className={classes.body} tabIndex={0} aria-label="Answer of the endpoint">
              <Exact text={responseBody} />
            </pre>
          )}
          {responseTruncated === true && (
            <p className={classes.muted}>The answer was longer; this is its beginning.</p>
          )}
        </div>
      )}
      {requestHeaders !== null && (
        <details className={classes.fold}>
          <summary>Headers of the request, without the signature</summary>
          <pre className={classes.body} tabIndex={0} aria-label="Headers of the request">
            <Exact
              text={Object.entries(requestHeaders)
                .map(([name, value]) => `${name}: ${value}`)
                .join('\n')}
            />
          </pre>
        </details>
      )}
    </div>
  );
}
