import { useState } from 'react';
import { Exact } from '../../parts/Exact.tsx';
import { Icon } from '../../parts/icons.tsx';
import { mergeNames, type Names } from '../../parts/names.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { EffectList } from '../../parts/plan/EffectList.tsx';
import type { Shown } from '../../parts/plan/effects.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import classes from './Inventory.module.css';
import type { Resource } from './inventoryQueries.ts';
import { usePlanNames, type Plan } from './usePlan.ts';

type Props = {
  plan: Plan;
  all: readonly Resource[];
  names?: Names | undefined;
  /** What there is to say before anything is planned. */
  nothing: string;
};

/** What a change would do: conflicts and warnings first, then each record that it changes. */
export function PlanPanel({ plan, all, names, nothing }: Props) {
  const [shown, setShown] = useState<Shown>({});
  const { data, effects, isOutdated, problem, retry } = plan;
  const found = usePlanNames(effects, all);
  return (
    <Section title="What changes" note={isOutdated ? 'Being planned' : undefined}>
      {problem && <ProblemNote problem={problem} retry={retry} />}
      {!data && !problem && <p className={classes.muted}>{isOutdated ? '' : nothing}</p>}
      {data && (
        <div
          className={classes.plan}
          data-outdated={isOutdated || undefined}
          aria-busy={isOutdated}
        >
          <Findings validation={data.validation} />
          <EffectList
            effects={effects}
            hidden={0}
            names={mergeNames([names, found])}
            shown={shown}
            onShown={setShown}
          />
        </div>
      )}
    </Section>
  );
}

type FindingsProps = { validation: NonNullable<Plan['data']>['validation'] };

/** Why a change cannot be made, and what to know before it is made. */
function Findings({ validation: { errors, conflicts, warnings } }: FindingsProps) {
  if (errors.length + conflicts.length + warnings.length === 0) return null;
  return (
    <div role="status">
      <ul className={classes.findings}>
        {errors.map(({ pointer, message }) => (
          <li key={`error ${pointer} ${message}`} className={classes.conflict}>
            <Icon name="alertTriangle" size={14} />
            <span>
              <code>{pointer.slice(1)}</code> {message}
            </span>
          </li>
        ))}
        {conflicts.map(({ code, message, resource, id }) => (
          <li key={`conflict ${code} ${id} ${message}`} className={classes.conflict}>
            <Icon name="alertTriangle" size={14} />
            <span>
              <Exact text={message} />
              {id !== null && resource !== null && (
                <>
                  {': '}
                  <RecordLink id={id} kind={resource} label={`open the ${nounOf(resource, 1)}`} />
                </>
              )}
            </span>
          </li>
        ))}
        {warnings.map(({ code, message, pointer }) => (
          <li key={`warning ${code} ${pointer} ${message}`} className={classes.warning}>
            <Icon name="info" size={14} />
            <Exact text={message} />
          </li>
        ))}
      </ul>
    </div>
  );
}
