import { Button } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { answer, api, Problem, type Schemas } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { serverNow } from '../../parts/clock.ts';
import { formatCount, formatNumberOf } from '../../parts/format.ts';
import { minuteOf } from '../../parts/localInput.ts';
import { TimeField } from '../../parts/TimeField.tsx';
import { errorAt, otherErrors } from '../../parts/form/fieldErrors.ts';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { backfillQuery, type Interval, type Schedule } from './scheduleQueries.ts';
import classes from './Schedules.module.css';
import { nounOf } from '../../../domain/shared/nouns.ts';

type Props = { schedule: Schedule; opened: boolean; onClose: () => void };

const DEBOUNCE_MS = 300;
const SHOWN = ['/since', '/until'];

/** Runs past occurrences, after showing how many that are. */
export function BackfillDialog({ schedule, opened, onClose }: Props) {
  return (
    <Dialog opened={opened} onClose={onClose} title={`Backfill ${schedule.name}`}>
      <BackfillForm schedule={schedule} onClose={onClose} />
    </Dialog>
  );
}

const intervalOf = (since: string | null, until: string | null): Interval | undefined =>
  since === null || until === null ? undefined : { since, until };

/** The interval that is typed, what a backfill of it would run, and the way to start it. */
function useBackfill(scheduleId: string) {
  const [since, setSince] = useState<string | null>(() => minuteOf(serverNow() - DAY_MS));
  const [until, setUntil] = useState<string | null>(() => minuteOf(serverNow()));
  const navigate = useNavigate();
  const [asked] = useDebouncedValue(`${since}|${until}`, DEBOUNCE_MS);
  const interval = intervalOf(since, until);
  const isCurrent = asked === `${since}|${until}`;
  const preview = useQuery(backfillQuery(scheduleId, isCurrent ? interval : undefined));
  const { create, isBusy, error } = useCreation({
    send: (body: Interval, header) =>
      answer(
        api.POST('/api/schedules/{id}/backfill', {
          params: { path: { id: scheduleId }, header },
          body,
        }),
      ),
    onMade: ({ id }) => void navigate({ to: '/jobs/$jobId', params: { jobId: id } }),
  });
  return {
    since,
    setSince,
    until,
    setUntil,
    interval,
    counts: isCurrent ? preview.data : undefined,
    /** Why it was not started. */
    refused: error,
    /** Why it is not known what would run. */
    unread: preview.error,
    countAgain: () => void preview.refetch(),
    start: create,
    isBusy,
  };
}

function BackfillForm({ schedule, onClose }: Omit<Props, 'opened'>) {
  const { start, isBusy, counts, refused, unread, countAgain, interval, ...typed } = useBackfill(
    schedule.id,
  );
  const problem = refused ?? unread;
  useBusyDialog(isBusy);
  const errors = problem instanceof Problem ? problem.errors : [];
  const isElsewhere = errors.length === 0 || otherErrors(errors, SHOWN).length > 0;
  return (
    <form
      className={classes.dialog}
      onSubmit={(event) => {
        event.preventDefault();
        if (interval && counts) start(interval);
      }}
    >
      <span>
        Runs occurrences of the past that have not run, one after the other. Overlapping runs are
        allowed. The schedule runs in {schedule.timezone}.
      </span>
      <div className={classes.row}>
        <TimeField
          data-autofocus
          label="From"
          value={typed.since}
          onChange={typed.setSince}
          error={errorAt(errors, '/since')}
        />
        <TimeField
          label="Until"
          value={typed.until}
          onChange={typed.setUntil}
          error={errorAt(errors, '/until')}
        />
      </div>
      <RefusedNote problem={refused} shown={SHOWN} />
      {!refused && unread && isElsewhere && <ProblemNote problem={unread} retry={countAgain} />}
      <div aria-live="polite">{counts && !problem && <Counts preview={counts} />}</div>
      <div className={classes.buttons}>
        <ReasonButton
          type="submit"
          loading={isBusy}
          reason={counts?.toRun === 0 ? 'No occurrence of the interval is left to run.' : undefined}
        >
          {runText(counts?.toRun)}
        </ReasonButton>
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Back
        </Button>
      </div>
    </form>
  );
}

const runText = (toRun: number | undefined): string => {
  if (toRun === undefined) return 'Run';
  return toRun === 0 ? 'Nothing to run' : `Run ${formatNumberOf(toRun, 'occurrence')}`;
};

const COUNTS = [
  ['toRun', 'to run'],
  ['hasRun', 'already run, or waiting to run'],
  ['pending', 'late, but still run without a backfill'],
  ['purged', 'with purged records: perhaps run, left out'],
  ['held', 'with a skipped run that a legal hold keeps: left out'],
] as const;

/** How many occurrences the interval has, and what becomes of them. */
function Counts({ preview }: { preview: Schemas['BackfillPreview'] }) {
  return (
    <dl className={classes.counts}>
      <dt>{formatCount(preview.occurrences)}</dt>
      <dd>{nounOf('occurrence', preview.occurrences)} in the interval, of which</dd>
      {COUNTS.filter(([name]) => preview[name] > 0 || name === 'toRun').map(([name, text]) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{formatCount(preview[name])}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
