import { Progress } from '@mantine/core';
import { Exact } from '../../../parts/Exact.tsx';
import { formatCount, formatNumberOf } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icons.tsx';
import { isRunning, type Import } from './importQueries.ts';
import { countsText } from './importText.ts';
import { progressOf } from './progressOf.ts';
import classes from './Imports.module.css';

/** How far an import is, or what has come of it. */
export function ImportProgress({ record }: { record: Import }) {
  const { status, rows, error, dryRun } = record;
  if (!isRunning(record))
    return (
      <>
        {error && (
          <p className={classes.failure} role="status">
            <Icon name="alertTriangle" size={16} />
            <span>
              <Exact text={error.message} /> (<code>{error.code}</code>)
            </span>
          </p>
        )}
        {status === 'cancelled' && <p className={classes.summary}>It was cancelled.</p>}
        <p className={classes.summary}>{countsText(record)}.</p>
      </>
    );
  const { percent, rowsDone } = progressOf(record);
  return (
    <>
      {error && (
        <p className={classes.muted}>
          It is tried again: <Exact text={error.message} />
        </p>
      )}
      <div className={classes.progress} role="status">
        <Progress className={classes.track} value={percent} size="lg" aria-label="Progress" />
        <strong>{percent} %</strong>
        <span>
          {status === 'queued'
            ? 'It waits to start.'
            : `${formatCount(rowsDone)} of ${formatNumberOf(rows, 'row')} ${dryRun ? 'checked' : 'done'}`}
        </span>
      </div>
    </>
  );
}
