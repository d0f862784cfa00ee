import { Button, NumberInput } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  addressBits,
  blockAt,
  formatBlock,
  formatHost,
} from '../../../../domain/inventory/cidr.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { countText } from '../../../parts/list/ListRows.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { formatCount } from '../../../parts/format.ts';
import { isSingle } from '../addresses/neighbours.ts';
import { inventoryRecordQuery, recordCountQuery } from '../inventoryQueries.ts';
import { useCountRefresh } from '../useCountRefresh.ts';
import { whereOf } from '../whereOf.ts';
import { UsageBar } from '../Usage.tsx';
import { AllocateDialog } from './AllocateDialog.tsx';
import { stateText, type ItemState } from './itemState.ts';
import type { MapItem, MapNode } from './mapModel.ts';
import { rangeText, sizeText } from './networks.ts';
import { NOT_A_POOL, usageQuery } from './spaceQueries.ts';
import classes from './Space.module.css';

type Props = {
  item: MapItem;
  state: ItemState;
  path: readonly MapNode[];
  vrf: string | undefined;
  onChoose: (cidr: string) => void;
  /** Shows the map of a prefix alone. */
  onShowMap: (id: string, cidr: string) => void;
};

/** What is chosen on the map or in the tree, and what can be done with it. */
export function ChosenPanel(props: Props) {
  const { item, state, path, vrf, onChoose } = props;
  const { cidr, node } = item;
  return (
    <section className={classes.chosen} aria-label="Chosen network">
      <div className={classes.chosenHead}>
        <h2 className={classes.chosenTitle}>{cidr}</h2>
        <CopyButton value={cidr} label={`Copy ${cidr}`} />
        {node?.prefix.status != null && <StatusBadge status={node.prefix.status} />}
        {node === null && <span>{stateText(state)}</span>}
      </div>
      {path.length > 0 && (
        <ol className={classes.path} aria-label="In">
          {path.map(({ prefix }) => (
            <li key={`${prefix.id} ${prefix.cidr}`}>
              <button type="button" onClick={() => onChoose(prefix.cidr)}>
                {prefix.cidr}
              </button>
            </li>
          ))}
        </ol>
      )}
      {isSingle(item.block) && (
        <PageLink
          className={classes.about}
          to="/inventory/ip-addresses/at"
          search={{
            address: formatHost(item.block.family, item.block.first),
            ...(vrf !== undefined && { vrf }),
          }}
        >
          About this address
        </PageLink>
      )}
      {node ? <Prefix {...props} node={node} /> : <NoPrefix {...props} />}
    </section>
  );
}

function Prefix({ item: { block, cidr }, node, vrf, onShowMap }: Props & { node: MapNode }) {
  const { id } = node.prefix;
  if (id === null)
    return (
      <p className={classes.muted}>
        {rangeText(block)}. You may not read this prefix. Its addresses are not free.
      </p>
    );
  return <ReadablePrefix key={id} {...{ id, cidr, block, vrf, onShowMap }} isRoot={!node.parent} />;
}

type ReadableProps = Pick<Props, 'vrf' | 'onShowMap'> &
  Pick<MapItem, 'block' | 'cidr'> & { id: string; isRoot: boolean };

function ReadablePrefix({ id, cidr, block, vrf, isRoot, onShowMap }: ReadableProps) {
  const read = [useQuery(usageQuery(id)), useQuery(inventoryRecordQuery('prefixes', id))] as const;
  const [{ data: usage }, { data: record }] = read;
  const failed = read.find(({ error }) => error !== null);
  const [isAllocating, setAllocating] = useState(false);
  return (
    <>
      {failed && (
        <ProblemNote
          problem={failed.error}
          retry={() => void failed.refetch()}
          hasData={failed.data !== undefined}
        />
      )}
      <DescriptionList
        items={[
          { label: 'Addresses', value: `${rangeText(block)} (${sizeText(block)})` },
          { label: 'Used', value: usage ? <UsageBar usage={usage} /> : null },
          { label: 'Prefixes in it', value: usage ? formatCount(usage.children) : null },
          { label: 'Single addresses', value: usage ? formatCount(usage.addresses) : null },
          {
            label: 'Description',
            value: typeof record?.description === 'string' ? record.description : null,
          },
        ]}
      />
      <div className={classes.buttons}>
        <RecordLink id={id} kind="prefixes" label="Open the prefix" />
        {!isRoot && (
          <Button variant="default" onClick={() => onShowMap(id, cidr)}>
            Map of it alone
          </Button>
        )}
        {record && (
          <PermissionButton
            permission="inventory:write"
            where={whereOf('prefixes', record)}
            onClick={() => setAllocating(true)}
          >
            Allocate …
          </PermissionButton>
        )}
        <NewPrefix cidr="" vrf={vrf} label="New prefix" />
      </div>
      {isAllocating && (
        <AllocateDialog
          {...{ id, cidr, block }}
          whyNoAddress={record?.allocationMode === 'pool' ? undefined : NOT_A_POOL}
          onClose={() => setAllocating(false)}
        />
      )}
    </>
  );
}

const isUnread = ({ kind }: ItemState): boolean =>
  kind === 'prefixesUnread' || kind === 'contentsUnread';

/** A network without a prefix: the whole of it, or its first part of another length, becomes one. */
function NoPrefix({ item: { block, cidr, node }, state, vrf }: Props) {
  const [length, setLength] = useState<{ of: string; value: number | string }>();
  const value = length?.of === cidr ? length.value : block.length;
  const isValid = value !== '' && Number(value) >= block.length;
  const wanted = isValid
    ? formatBlock(blockAt(block.family, block.first, Number(value)))
    : undefined;
  if (node) return null;
  return (
    <>
      <DescriptionList
        items={[{ label: 'Addresses', value: `${rangeText(block)} (${sizeText(block)})` }]}
      />
      <Contents cidr={cidr} vrf={vrf} isFree={state.kind === 'free'} />
      {isUnread(state) ? (
        <p className={classes.muted}>What is in it is not known: it may be in use.</p>
      ) : (
        <div className={classes.buttons}>
          <NumberInput
            label="Length"
            prefix="/"
            min={block.length}
            max={addressBits(block.family)}
            allowDecimal={false}
            value={value}
            onChange={(next) => setLength({ of: cidr, value: next })}
            w={90}
          />
          {wanted !== undefined && (
            <NewPrefix cidr={wanted} vrf={vrf} label={`New prefix ${wanted}`} />
          )}
        </div>
      )}
    </>
  );
}

const CONTENTS = [
  { name: 'ip-addresses', kind: 'ip-address', noun: ['IP address', 'IP addresses'] },
  { name: 'ip-ranges', kind: 'ip-range', noun: ['IP range', 'IP ranges'] },
] as const;

type ContentsProps = { cidr: string; vrf: string | undefined; isFree: boolean };

/** Addresses and ranges that are in a network without a prefix, as far as the user may read them. */
function Contents({ cidr, vrf, isFree }: ContentsProps) {
  const search = { within: cidr, vrfId: vrf ?? 'none' };
  const filter = { within: [cidr], vrfId: [search.vrfId] };
  const queries = useQueries({
    queries: CONTENTS.map(({ name }) => recordCountQuery(name, filter)),
  });
  useCountRefresh(CONTENTS[0], filter);
  useCountRefresh(CONTENTS[1], filter);
  const found = CONTENTS.map(({ name, noun }, at) => ({
    ...{ resource: name, noun },
    count: queries[at]?.data,
  }));
  const failed = queries.find(({ error }) => error !== null);
  if (failed) return <ProblemNote problem={failed.error} retry={() => void failed.refetch()} />;
  if (isFree && found.every(({ count }) => count?.value === 0))
    return <p className={classes.muted}>It is free: nothing else is here.</p>;
  return (
    <ul className={classes.contents} aria-label="In this network">
      {found.map(({ resource, noun, count }) =>
        count && count.value > 0 ? (
          <li key={resource}>
            <PageLink to="/inventory/$resource" params={{ resource }} search={search}>
              {countText(count, noun)}
            </PageLink>
          </li>
        ) : null,
      )}
    </ul>
  );
}

/** Leads to the form, where the prefix is created or asked for. */
function NewPrefix({ cidr, vrf, label }: { cidr: string; vrf: string | undefined; label: string }) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('inventory:write')) return null;
  return (
    <Button
      variant="default"
      renderRoot={(props) => (
        <PageLink
          {...props}
          to="/inventory/$resource/new"
          params={{ resource: 'prefixes' }}
          search={{ ...(cidr !== '' && { cidr }), ...(vrf !== undefined && { vrfId: vrf }) }}
        />
      )}
    >
      {label}
    </Button>
  );
}
