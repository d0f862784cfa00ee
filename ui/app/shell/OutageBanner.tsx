import { useEffect, useRef } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { canAnswer, readWhatFailed, type Outage } from '../health.ts';
import classes from './OutageBanner.module.css';

const WAITS = 'What is on screen stays, and may be old. This page continues when it is back.';

const TEXTS: Readonly<Record<Outage, { title: string; detail: string }>> = {
  unreachable: { title: 'Holdfast cannot be reached', detail: WAITS },
  unavailable: { title: 'Holdfast is not available', detail: WAITS },
  postgres: { title: 'The database is not available', detail: WAITS },
  schema: {
    title: 'The database needs migrations',
    detail: 'Nothing can be read or changed until they have run.',
  },
  temporal: {
    title: 'Temporal is not available',
    detail: 'Changes are accepted; jobs and schedules run when it is back.',
  },
};

/** Says once for all parts of the page that the server cannot work now. It disappears by itself. */
export function OutageBanner({ outage }: { outage: Outage | undefined }) {
  useRecovery(outage);
  return (
    <div role="status" className={classes.position}>
      {outage !== undefined && (
        <div className={classes.banner}>
          <Icon name="alertTriangle" size={16} />
          <strong>{TEXTS[outage].title}.</strong> <span>{TEXTS[outage].detail}</span>
        </div>
      )}
    </div>
  );
}

function useRecovery(outage: Outage | undefined): void {
  const last = useRef(outage);
  useEffect(() => {
    const before = last.current;
    last.current = outage;
    if (canAnswer(outage) && !canAnswer(before)) readWhatFailed();
  }, [outage]);
}
