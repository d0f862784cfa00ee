import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Block } from '../../../../domain/inventory/cidr.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import links from '../Inventory.module.css';
import { inventoryRecordQuery } from '../inventoryQueries.ts';
import { whereOf } from '../whereOf.ts';
import { AllocateDialog } from '../space/AllocateDialog.tsx';
import { NOT_A_POOL, treeQuery } from '../space/spaceQueries.ts';
import { nextFreeIn } from './neighbours.ts';
import classes from './Addresses.module.css';

type Props = { prefix: { id: string; cidr: string; block: Block }; vrf: string | undefined };

/** The lowest free address of the prefix around an address, to be allocated. */
export function NextFree({ prefix: { id, cidr, block }, vrf }: Props) {
  const { data: tree, error, refetch } = useQuery(treeQuery(id));
  const { data: record } = useQuery(inventoryRecordQuery('prefixes', id));
  const [isAllocating, setAllocating] = useState(false);
  const next = tree?.exact === true ? nextFreeIn(block, tree.free) : undefined;
  const isFull = tree?.exact === true && tree.nextCursor === null && next === undefined;
  return (
    <Section title={`Next free in ${cidr}`}>
      {error && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={tree !== undefined} />
      )}
      <div className={classes.next}>
        {next !== undefined && (
          <>
            <PageLink
              className={links.link}
              to="/inventory/ip-addresses/at"
              search={{ address: next, ...(vrf !== undefined && { vrf }) }}
            >
              {next}
            </PageLink>
            <CopyButton value={next} label={`Copy ${next}`} />
          </>
        )}
        {isFull && <span className={classes.hint}>It has no free address.</span>}
        {record && (
          <PermissionButton
            permission="inventory:write"
            where={whereOf('prefixes', record)}
            variant="default"
            onClick={() => setAllocating(true)}
          >
            Allocate …
          </PermissionButton>
        )}
      </div>
      {isAllocating && (
        <AllocateDialog
          {...{ id, cidr, block }}
          whyNoAddress={record?.allocationMode === 'pool' ? undefined : NOT_A_POOL}
          onClose={() => setAllocating(false)}
        />
      )}
    </Section>
  );
}
