import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, type KeyboardEvent } from 'react';
import type { Schemas } from '../../app/api.ts';
import { formatCount } from '../../parts/format.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { daysQuery } from './scheduleQueries.ts';
import { countOutcomes, dayText, OUTCOMES, weeksOf, type OutcomeName } from './scheduleText.ts';
import classes from './Schedules.module.css';

type Day = Schemas['ScheduleDay'];
type Range = { from: Date; to: Date };

type Props = {
  scheduleId: string;
  /** The day that is chosen, by its start. */
  chosen: string | undefined;
  onChoose: (day: Range | undefined) => void;
};

const DAYS = 91;
const WEEKDAYS = ['Mon', '', 'Wed', '', 'Fri', '', 'Sun'];
/** Shown in a day beside its colours: these need attention. */
const MARKS: Readonly<Partial<Record<OutcomeName, string>>> = { failed: '✕', missed: '!' };

/** How the runs of each of the last days ended. A day filters the runs below. */
export function RunCalendar({ scheduleId, chosen, onChoose }: Props) {
  const { data, error, refetch } = useQuery(daysQuery(scheduleId, DAYS));
  const days = data?.days ?? [];
  return (
    <Section title="Outcomes" note={data && `By day, ${data.timezone}`}>
      {error && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={data !== undefined} />
      )}
      {data?.days === null && (
        <p className={classes.muted}>There are too many runs to count them by day.</p>
      )}
      {days.length > 0 && (
        <>
          <Weeks days={days} chosen={chosen} onChoose={onChoose} />
          <Legend days={days} />
        </>
      )}
    </Section>
  );
}

const ARROWS: Readonly<Record<string, number>> = {
  ArrowUp: -1,
  ArrowDown: 1,
  ArrowLeft: -7,
  ArrowRight: 7,
};

function Weeks({ days, chosen, onChoose }: Omit<Props, 'scheduleId'> & { days: readonly Day[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const count = days.length;
  // Today is at the end.
  useEffect(() => {
    frame.current?.scrollTo({ left: frame.current.scrollWidth });
  }, [count]);
  const indexOf = new Map(days.map((day, index) => [day.date, index]));
  const move = (event: KeyboardEvent, index: number) => {
    const by = ARROWS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    frame.current?.querySelectorAll<HTMLElement>('button')[index + by]?.focus();
  };
  return (
    <div className={classes.calendar} ref={frame} role="group" aria-label="Runs by day">
      <div className={classes.weekdays} aria-hidden="true">
        <span />
        {WEEKDAYS.map((name, index) => (
          <span key={index}>{name}</span>
        ))}
      </div>
      {weeksOf(days).map((week) => {
        const first = week.find((day) => day !== undefined);
        return (
          <div key={first?.date} className={classes.week}>
            <span className={classes.month} aria-hidden="true">
              {monthOf(week)}
            </span>
            {week.map((day, index) => {
              if (!day) return <span key={index} />;
              const at = indexOf.get(day.date) ?? 0;
              const isChosen = chosen === day.start;
              return (
                <DayCell
                  key={day.date}
                  day={day}
                  isChosen={isChosen}
                  // One stop of Tab for all days: the chosen one, or today. The arrows go on from there.
                  isStop={
                    isChosen || (at === count - 1 && !days.some((each) => each.start === chosen))
                  }
                  onClick={() =>
                    onChoose(
                      isChosen ? undefined : { from: new Date(day.start), to: new Date(day.end) },
                    )
                  }
                  onKeyDown={(event) => move(event, at)}
                />
              );
            })}
          </div>
        );
      })}
    </div>
  );
}

/** The name of the month that starts in a week. */
const monthOf = (week: readonly (Day | undefined)[]): string => {
  const first = week.find((day) => day?.date.endsWith('-01'));
  return first
    ? new Date(`${first.date}T00:00:00Z`).toLocaleDateString('en-GB', {
        month: 'short',
        timeZone: 'UTC',
      })
    : '';
};

type CellProps = {
  day: Day;
  isChosen: boolean;
  isStop: boolean;
  onClick: () => void;
  onKeyDown: (event: KeyboardEvent) => void;
};

function DayCell({ day, isChosen, isStop, onClick, onKeyDown }: CellProps) {
  const outcomes = countOutcomes(day.runs);
  const total = outcomes.reduce((sum, { count }) => sum + count, 0);
  const mark = outcomes.map(({ name }) => MARKS[name]).find((each) => each !== undefined);
  const text = dayText(day.date, day.runs);
  return (
    <button
      type="button"
      className={classes.day}
      aria-pressed={isChosen}
      aria-label={text}
      title={text}
      tabIndex={isStop ? 0 : -1}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      {outcomes.map(({ name, tone, count }) => (
        <span key={name} className={classes.part} data-tone={tone} style={{ flexGrow: count }} />
      ))}
      {total > 0 && (
        <span className={classes.dayText} aria-hidden="true">
          {mark}
          {total > 999 ? '1k+' : formatCount(total)}
        </span>
      )}
    </button>
  );
}

/** The outcomes that the calendar has, with their colours and numbers. */
function Legend({ days }: { days: readonly Day[] }) {
  const counted = countOutcomes(days.flatMap(({ runs }) => runs));
  if (counted.length === 0)
    return <p className={classes.muted}>No runs in the last {days.length} days.</p>;
  return (
    <ul className={classes.legend} aria-label="Outcomes">
      {OUTCOMES.flatMap(({ name }) => counted.filter((each) => each.name === name)).map(
        ({ name, label, tone, count }) => (
          <li key={name}>
            <span className={classes.swatch}>
              <span className={classes.part} data-tone={tone} style={{ display: 'block' }} />
            </span>
            {MARKS[name]} {label} {formatCount(count)}
          </li>
        ),
      )}
    </ul>
  );
}
