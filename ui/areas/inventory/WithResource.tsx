import type { ReactNode } from 'react';
import { headingOf } from '../../../domain/shared/nouns.ts';
import { Empty } from '../../parts/Empty.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import type { Resource } from './inventoryQueries.ts';
import { titleOf, useResource } from './resources.ts';

const INVENTORY = { label: 'Inventory', to: '/inventory' };

type Props = {
  name: string;
  children: (resource: Resource, all: readonly Resource[]) => ReactNode;
};

/** The list that a record is in. */
export const parentOf = (resource: Resource) => ({
  label: titleOf(resource),
  to: `/inventory/${resource.name}`,
});

/** A page that is made from the description of a resource, once that is read. */
export function WithResource({ name, children }: Props) {
  const { resource, all, isUnknown, error, retry } = useResource(name);
  if (resource && all) return children(resource, all);
  if (error)
    return (
      <RecordPage parent={INVENTORY} title={headingOf(name)}>
        <ProblemNote problem={error} retry={retry} />
      </RecordPage>
    );
  if (!isUnknown) return null;
  return (
    <Empty
      isPage
      kind="nothing"
      title={`There is no resource ${name}`}
      detail={<PageLink to="/inventory">All resources</PageLink>}
    />
  );
}
