import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { Actor } from '../../parts/Actor.tsx';
import { formatCount, wordsOfField } from '../../parts/format.ts';
import { Icon, type IconName } from '../../parts/icons.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { chosenKindOf } from '../../parts/recordIds.ts';
import { Time } from '../../parts/Time.tsx';
import { Block, Row, Rows } from './Block.tsx';
import { groupChanges, type ChangeGroup } from './findings.ts';
import { problemsOf } from './problems.ts';
import { changesQuery, kindsQuery, SHOWN_CHANGES } from './queries.ts';
import type { Names } from '../../parts/names.ts';
import classes from './links.module.css';

const ICONS: Readonly<Record<string, IconName>> = {
  created: 'plus',
  changed: 'edit',
  deleted: 'trash',
};

const MAX_FIELDS = 4;

/** The words for one and for several records of a kind. */
type Nouns = ReadonlyMap<string, { singular: string; plural: string }>;

type ChangeProps = { change: ChangeGroup; names: Names; nouns: Nouns };

/** What is said of one change: its record, and the fields that it has changed. */
function OneChange({ change: { verb, kind, label, fields, newest } }: ChangeProps) {
  const words = fields.slice(0, MAX_FIELDS).map(wordsOfField);
  return (
    <>
      {verb === 'deleted' ? (
        <strong>
          <Exact text={label} />
        </strong>
      ) : (
        <RecordLink
          id={newest.subject.id}
          label={label === '' ? undefined : label}
          kind={chosenKindOf(kind)}
        />
      )}
      {verb === 'changed' && words.length > 0 && (
        <span className={classes.quiet}>
          {' '}
          ({words.join(', ')}
          {fields.length > MAX_FIELDS && ', …'})
        </span>
      )}
    </>
  );
}

function Change(props: ChangeProps) {
  const { change, names, nouns } = props;
  const { verb, kind, count, newest, isPart } = change;
  const noun = nouns.get(kind)?.[count === 1 ? 'singular' : 'plural'] ?? kind;
  return (
    <Row
      icon={<Icon name={ICONS[verb] ?? 'edit'} size={14} />}
      end={<Time value={newest.createdAt} format="relative" />}
    >
      <Actor id={newest.actorId} names={names} /> {verb}{' '}
      {count > 1 && `${formatCount(count)}${isPart ? ' or more' : ''} `}
      {noun}
      {count > 1 ? ', last ' : ' '}
      <OneChange {...props} />
    </Row>
  );
}

const eventTypes = (kinds: readonly { kind: string }[]): string[] =>
  kinds.flatMap(({ kind }) =>
    ['created', 'updated', 'deleted'].map((verb) => `inventory.${kind}.${verb}`),
  );

type Props = {
  isAllowed: boolean;
  /** Whether no change is left out of what the reader may see. */
  seesAll: boolean;
};

/** The newest changes of the inventory. */
export function ChangesBlock({ isAllowed, seesAll }: Props) {
  const kinds = useQuery({ ...kindsQuery, enabled: isAllowed });
  const types = useMemo(() => eventTypes(kinds.data?.items ?? []), [kinds.data]);
  const changes = useQuery({ ...changesQuery(types), enabled: isAllowed && types.length > 0 });
  useLiveRefresh(['inventory.*'], ['home', 'changes']);
  if (!isAllowed) return null;
  const nouns: Nouns = new Map(kinds.data?.items.map((each) => [each.kind, each]));
  const { items, hasMore = false } = changes.data ?? {};
  return (
    <Block
      title="Recent changes"
      problems={problemsOf([kinds, changes])}
      loading={items === undefined}
    >
      {items?.length === 0 && (
        <p className={classes.quiet}>
          {seesAll ? 'The inventory has not been changed yet.' : 'No change that you may see.'}
        </p>
      )}
      {items && items.length > 0 && (
        <Rows label="Recent changes">
          {groupChanges({ events: items, hasMore }, SHOWN_CHANGES).map((change) => (
            <Change
              key={change.newest.id}
              change={change}
              names={changes.data?.names ?? {}}
              nouns={nouns}
            />
          ))}
        </Rows>
      )}
    </Block>
  );
}
