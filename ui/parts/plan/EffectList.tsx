import { Button } from '@mantine/core';
import { useEffect } from 'react';
import { flushSync } from 'react-dom';
import { FieldDiff } from '../diff/FieldDiff.tsx';
import { exactText } from '../exact.ts';
import { Exact } from '../Exact.tsx';
import { formatCount, formatNumberOf } from '../format.ts';
import { Icon, type IconName } from '../icons.tsx';
import type { Names } from '../names.ts';
import { headingOf } from '../../../domain/shared/nouns.ts';
import { ownValue } from '../ownValue.ts';
import { RecordLink } from '../RecordLink.tsx';
import {
  allShown,
  groupEffects,
  rowsOf,
  shownOf,
  type Effect,
  type EffectGroup,
  type Shown,
} from './effects.ts';
import classes from './EffectList.module.css';

/** How many more records of a group are shown each time. */
const MORE = 100;

const ACTIONS: Readonly<Record<Effect['action'], { text: string; icon: IconName }>> = {
  create: { text: 'Create', icon: 'plus' },
  update: { text: 'Change', icon: 'edit' },
  delete: { text: 'Delete', icon: 'trash' },
};

const REASONS: Readonly<Record<Effect['reason'], string | undefined>> = {
  requested: undefined,
  reparented: 'gets another parent prefix',
  reference_cleared: 'referred to a record that is deleted',
  cascade: 'changes together with another record',
};

/** One record: what is done with it, and its fields before and after. */
function EffectRow({ effect, names }: { effect: Effect; names: Names }) {
  const { action, id, label, reason, resource } = effect;
  const { text, icon } = ownValue(ACTIONS, action) ?? { text: action, icon: 'edit' };
  const why = reason in REASONS ? REASONS[reason] : reason;
  const name = (
    <strong>
      <Exact text={label} />
    </strong>
  );
  return (
    <li className={classes.effect}>
      <div className={classes.head}>
        <span className={classes.action} data-action={action}>
          <Icon name={icon} size={13} />
          {text}
        </span>
        <span className={classes.label}>
          {id.startsWith('new:') ? name : <RecordLink id={id} label={name} kind={resource} />}
        </span>
        {why !== undefined && <span className={classes.reason}>{why}</span>}
      </div>
      <FieldDiff
        quiet
        resource={resource}
        rows={rowsOf(effect)}
        names={names}
        action={action}
        label={`${text} ${exactText(label)}`}
      />
    </li>
  );
}

type GroupProps = {
  group: EffectGroup;
  names: Names;
  limit: number;
  onLimit: (limit: number) => void;
};

function Group({ group, names, limit, onLimit }: GroupProps) {
  const { resource, effects, counts } = group;
  const left = effects.length - limit;
  return (
    <section className={classes.group} aria-label={headingOf(resource)}>
      <h3 className={classes.heading}>
        {headingOf(resource)} <span className={classes.counts}>{counts}</span>
      </h3>
      <ul className={classes.effects}>
        {effects.slice(0, limit).map((effect) => (
          <EffectRow key={effect.id} effect={effect} names={names} />
        ))}
      </ul>
      {left > 0 && (
        <Button variant="default" onClick={() => onLimit(limit + MORE)}>
          Show {formatCount(Math.min(left, MORE))} more of {formatCount(left)}
        </Button>
      )}
    </section>
  );
}

type Props = {
  effects: readonly Effect[];
  hidden: number | null;
  names: Names;
  /** How many records of each resource are shown; the bar that decides says how many are not. */
  shown: Shown;
  onShown: (shown: Shown) => void;
  /** What happens to the records of each resource, where not all of them are listed. */
  counts?: Readonly<Record<string, string>> | undefined;
};

/** Every record that a plan changes, by resource. */
export function EffectList({ effects, hidden, names, shown, onShown, counts }: Props) {
  useEffect(() => {
    // What is printed is complete.
    const showAll = () => flushSync(() => onShown(allShown(effects)));
    addEventListener('beforeprint', showAll);
    return () => removeEventListener('beforeprint', showAll);
  }, [effects, onShown]);
  return (
    <div className={classes.list}>
      {groupEffects(effects).map((group) => (
        <Group
          key={group.resource}
          group={{ ...group, counts: counts?.[group.resource] ?? group.counts }}
          names={names}
          limit={shownOf(shown, group.resource)}
          onLimit={(limit) => onShown({ ...shown, [group.resource]: limit })}
        />
      ))}
      {hidden === null && (
        <p className={classes.hidden}>
          <Icon name="eyeOff" size={14} />
          You may not read the records that this request changes.
        </p>
      )}
      {hidden !== null && hidden > 0 && (
        <p className={classes.hidden}>
          <Icon name="eyeOff" size={14} />
          {formatNumberOf(hidden, 'more record')} that you may not read{' '}
          {hidden === 1 ? 'changes' : 'change'}.
        </p>
      )}
    </div>
  );
}
