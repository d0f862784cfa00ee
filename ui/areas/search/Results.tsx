import { parseHost } from '../../../domain/inventory/cidr.ts';
import type { Schemas } from '../../app/api.ts';
import { exactText } from '../../parts/exact.ts';
import { Exact } from '../../parts/Exact.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { headingOf, nounOf } from '../../../domain/shared/nouns.ts';
import { recordPath } from '../../parts/recordIds.ts';
import { NothingFound } from './NothingFound.tsx';
import {
  groupFound,
  markWords,
  matchReason,
  spacesAround,
  type Around,
  type Found,
  type FoundGroup,
} from './results.ts';
import classes from './Results.module.css';
import { PageLink } from '../../parts/PageLink.tsx';

function Marked({ text, query }: { text: string; query: string }) {
  return markWords(text, query).map((part, index) =>
    // The same text has the same parts.
    part.isMarked ? (
      <mark key={index}>
        <Exact text={part.text} />
      </mark>
    ) : (
      <Exact key={index} text={part.text} />
    ),
  );
}

/** The address space of a network. */
const spaceText = (names: Names, vrfId: string | null): string =>
  vrfId === null ? 'global table' : `VRF ${labelOf(names, vrfId, 'vrfs') ?? vrfId}`;

const ADDRESS_KINDS: ReadonlySet<string> = new Set(['prefixes', 'ip-addresses', 'ip-ranges']);

type RowProps = { item: Found; query: string; names: Names };

function FoundRow({ item, query, names }: RowProps) {
  const { kind, id, label, description, tenantId, vrfId } = item;
  const where = [
    ADDRESS_KINDS.has(kind) ? spaceText(names, vrfId) : '',
    tenantId === null ? '' : (labelOf(names, tenantId, 'tenants') ?? tenantId),
  ].filter((text) => text !== '');
  const reason = matchReason(item, query);
  return (
    <li>
      <PageLink to={recordPath(id, kind)} className={classes.result} data-result>
        <span className={classes.label} dir="auto">
          <Marked text={label === '' ? id : label} query={query} />
        </span>
        <span className={classes.description} dir="auto" title={exactText(description)}>
          <Marked text={description} query={query} />
        </span>
        <span className={classes.facts}>
          {reason !== undefined && <span className={classes.reason}>{reason}</span>}
          <span>{where.join(' · ')}</span>
        </span>
      </PageLink>
    </li>
  );
}

type GroupProps = { group: FoundGroup; query: string; names: Names; isOnly: boolean };

function Group({ group: { kind, items, hasMore }, query, names, isOnly }: GroupProps) {
  const id = `found-${kind}`;
  return (
    <section aria-labelledby={id}>
      <div className={classes.head}>
        <h2 id={id} className={classes.heading}>
          {headingOf(kind)}
        </h2>
        {hasMore && !isOnly && (
          <PageLink to="/search" search={{ q: query, kinds: kind }} className={classes.more}>
            More {nounOf(kind, 2)}
          </PageLink>
        )}
        {hasMore && isOnly && (
          <span className={classes.note}>and more: add a word to narrow it down</span>
        )}
      </div>
      <ul className={classes.list}>
        {items.map((item) => (
          <FoundRow key={item.id} item={item} query={query} names={names} />
        ))}
      </ul>
    </section>
  );
}

/** A network around an address; the smallest one is what was asked for. */
function AroundRow({
  prefix: { id, label, description },
  isSmallest,
}: {
  prefix: Around;
  isSmallest: boolean;
}) {
  return (
    <li>
      <PageLink
        to={recordPath(id)}
        className={classes.result}
        data-result
        data-smallest={isSmallest || undefined}
      >
        <span className={classes.label}>{label}</span>
        <span className={classes.description} dir="auto" title={description}>
          {description}
        </span>
        <span className={classes.facts}>
          {isSmallest && <span className={classes.reason}>smallest</span>}
        </span>
      </PageLink>
    </li>
  );
}

type AroundProps = { around: readonly Around[]; query: string; names: Names };

/** True for an address without a length: it has a page, recorded or not. */
const isAddress = (query: string): boolean => parseHost(query) !== undefined;

/** The networks that contain the address, in each address space: the smallest one first. */
function AroundSection({ around, query, names }: AroundProps) {
  if (around.length === 0) return null;
  return (
    <section aria-labelledby="around">
      <div className={classes.head}>
        <h2 id="around" className={classes.heading}>
          Networks that contain {query}
        </h2>
      </div>
      {spacesAround(around).map(({ vrfId, prefixes }) => (
        <div key={vrfId ?? ''} className={classes.space}>
          <h3 className={classes.spaceName}>{spaceText(names, vrfId)}</h3>
          {isAddress(query) && (
            <PageLink
              to="/inventory/ip-addresses/at"
              search={{ address: query, ...(vrfId !== null && { vrf: vrfId }) }}
              className={classes.more}
              data-result
            >
              {query}: what is beside it, and the next free one
            </PageLink>
          )}
          <ul className={classes.list}>
            {prefixes.map((prefix, index) => (
              <AroundRow
                key={prefix.id}
                prefix={prefix}
                isSmallest={index === 0 && prefixes.length > 1}
              />
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

type Props = { query: string; kinds: string | undefined; result: Schemas['SearchResult'] };

/** How many there are, and of what. */
function Summary({ query, kinds, result: { items, around, more } }: Props) {
  const isRecorded = items.some(({ kind, match }) => match === 'exact' && ADDRESS_KINDS.has(kind));
  return (
    <p className={classes.summary} role="status">
      {items.length > 0 && formatNumberOf(items.length, 'record')}
      {items.length > 0 && more.length > 0 && ' and more'}
      {around.length > 0 && !isRecorded && `${query} is not recorded itself.`}
      {kinds !== undefined && items.length > 0 && (
        <>
          {' · '}
          <PageLink to="/search" search={{ q: query }} className={classes.more}>
            Search all kinds
          </PageLink>
        </>
      )}
    </p>
  );
}

const notAnswered = (kind: string): string =>
  kind === 'around' ? 'networks around it' : nounOf(kind, 2);

/** What a search has found, by kind. */
export function Results({ query, kinds, result }: Props) {
  const { items, around, incomplete, included } = result;
  const names = included ?? {};
  const isNothing = items.length + around.length + incomplete.length === 0;
  if (isNothing) return <NothingFound query={query} kinds={kinds} />;
  return (
    <div className={classes.results}>
      <Summary query={query} kinds={kinds} result={result} />
      {incomplete.length > 0 && (
        <p className={classes.incomplete} role="alert">
          Not everything answered in time: {incomplete.map(notAnswered).join(', ')}. A longer text
          may help.
        </p>
      )}
      <AroundSection around={around} query={query} names={names} />
      {groupFound(result).map((group) => (
        <Group
          key={group.kind}
          group={group}
          query={query}
          names={names}
          isOnly={kinds === group.kind}
        />
      ))}
    </div>
  );
}
