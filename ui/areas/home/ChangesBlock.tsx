import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { Actor } from '../../parts/Actor.tsx';
import { labelOfField } from '../../parts/format.ts';
import { Icon, type IconName } from '../../parts/icons.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import type { Schemas } from '../../app/api.ts';
import { Block, Row, Rows } from './Block.tsx';
import { changeText } from './findings.ts';
import { problemsOf } from './problems.ts';
import { changesQuery, kindsQuery } from './queries.ts';
import type { Names } from '../../parts/names.ts';
import classes from './links.module.css';

const ICONS: Readonly<Record<string, IconName>> = {
  created: 'plus',
  changed: 'edit',
  deleted: 'trash',
};

const MAX_FIELDS = 4;

function Change({ event, names, noun }: { event: Schemas['Event']; names: Names; noun: string }) {
  const { verb, label, fields } = changeText(event);
  const words = fields.slice(0, MAX_FIELDS).map((field) => labelOfField(field).toLowerCase());
  return (
    <Row
      icon={<Icon name={ICONS[verb] ?? 'edit'} size={14} />}
      end={<Time value={event.createdAt} format="relative" />}
    >
      <Actor id={event.actorId} names={names} /> {verb} {noun}{' '}
      {verb === 'deleted' ? (
        <strong>{label}</strong>
      ) : (
        <RecordLink id={event.subject.id} label={label === '' ? undefined : label} />
      )}
      {verb === 'changed' && words.length > 0 && (
        <span className={classes.quiet}>
          {' '}
          ({words.join(', ')}
          {fields.length > MAX_FIELDS && ', …'})
        </span>
      )}
    </Row>
  );
}

const eventTypes = (kinds: readonly { kind: string }[]): string[] =>
  kinds.flatMap(({ kind }) =>
    ['created', 'updated', 'deleted'].map((verb) => `inventory.${kind}.${verb}`),
  );

/** The newest changes of the inventory. */
export function ChangesBlock({ isAllowed }: { isAllowed: boolean }) {
  const kinds = useQuery({ ...kindsQuery, enabled: isAllowed });
  const types = useMemo(() => eventTypes(kinds.data?.items ?? []), [kinds.data]);
  const changes = useQuery({ ...changesQuery(types), enabled: isAllowed && types.length > 0 });
  useLiveRefresh(['inventory.*'], ['home', 'changes']);
  if (!isAllowed) return null;
  const nouns = new Map(kinds.data?.items.map(({ kind, singular }) => [kind, singular]));
  const items = changes.data?.items;
  return (
    <Block
      title="Recent changes"
      problems={problemsOf([kinds, changes])}
      loading={items === undefined}
    >
      {items?.length === 0 && (
        <p className={classes.quiet}>The inventory has not been changed yet.</p>
      )}
      {items && items.length > 0 && (
        <Rows label="Recent changes">
          {items.map((event) => (
            <Change
              key={event.id}
              event={event}
              names={changes.data?.names ?? {}}
              noun={nouns.get(changeText(event).kind) ?? changeText(event).kind}
            />
          ))}
        </Rows>
      )}
    </Block>
  );
}
