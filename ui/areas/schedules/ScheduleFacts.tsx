import { useJobTypes } from '../../app/jobTypes.ts';
import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { formatDuration } from '../../parts/format.ts';
import { describeRetries, withDefaults } from '../../parts/form/retryPolicy.ts';
import { labelOf } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { targetLabel } from '../../parts/records/target.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { Schedule } from './scheduleQueries.ts';
import { TakeOver } from './Notices.tsx';
import { NextRuns } from './NextRuns.tsx';
import { overlapLabel } from './scheduleText.ts';
import classes from './Schedules.module.css';

/** When a schedule runs, what it runs, and for whom. */
export function ScheduleFacts({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <Section title="Next runs">
        {schedule.timingProblem !== null ? (
          <p role="alert">
            <Exact text={schedule.timingProblem} />
          </p>
        ) : schedule.nextRuns.length === 0 ? (
          <p className={classes.muted}>None.</p>
        ) : (
          <NextRuns runs={schedule.nextRuns} timezone={schedule.timezone} label="Next runs" />
        )}
      </Section>
      <Details schedule={schedule} />
    </>
  );
}

function Details({ schedule }: { schedule: Schedule }) {
  const { included: names, retryPolicy, maxRuns, jitterSeconds, spreadSeconds } = schedule;
  const types = useJobTypes();
  const own = types.data?.items.find(({ name }) => name === schedule.jobType)?.retryPolicy;
  const policy = withDefaults(own, retryPolicy);
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Expression', value: <code>{schedule.cronExpression}</code> },
          { label: 'Time zone', value: schedule.timezone },
          { label: 'Job type', value: schedule.jobType },
          schedule.target !== null && {
            label: targetLabel(schedule.target.kind),
            value: <RecordLink id={schedule.target.id} names={names} />,
          },
          {
            label: 'Owner',
            value: (
              <span className={classes.inline}>
                <Actor id={schedule.owner} names={names} /> <TakeOver schedule={schedule} />
              </span>
            ),
          },
          {
            label: 'Tenant',
            value: labelOf(names, schedule.tenantId, 'tenants') ?? schedule.tenantId,
          },
          { label: 'Overlaps', value: overlapLabel(schedule.overlapPolicy) },
          {
            label: 'Catch-up',
            value: `up to ${formatDuration(schedule.catchupWindowSeconds * 1_000)} late`,
          },
          jitterSeconds + spreadSeconds > 0 && {
            label: 'Delay',
            value: `random, up to ${formatDuration(Math.max(jitterSeconds, spreadSeconds) * 1_000)}`,
          },
          schedule.startAt !== null && {
            label: 'Not before',
            value: <Time value={schedule.startAt} />,
          },
          schedule.endAt !== null && {
            label: 'Not after',
            value: <Time value={schedule.endAt} />,
          },
          {
            label: 'Runs',
            value:
              maxRuns === null ? String(schedule.runCount) : `${schedule.runCount} of ${maxRuns}`,
          },
          own !== undefined && { label: 'Retries', value: describeRetries(policy) },
          { label: 'Created', value: <Time value={schedule.createdAt} /> },
          { label: 'Created by', value: <Actor id={schedule.createdBy} names={names} /> },
          { label: 'Changed', value: <Time value={schedule.updatedAt} /> },
        ]}
      />
    </Section>
  );
}
