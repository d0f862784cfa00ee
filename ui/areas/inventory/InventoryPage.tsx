import { useQuery } from '@tanstack/react-query';
import { PageLink } from '../../parts/PageLink.tsx';
import { countText } from '../../parts/list/ListRows.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { ImportButton } from './imports/ImportButton.tsx';
import classes from './Inventory.module.css';
import { resourcesQuery } from '../../parts/records/resources.ts';
import { recordCountQuery, type Resource } from './inventoryQueries.ts';
import { groupsOf, titleOf } from './resources.ts';
import { useCountRefresh } from './useCountRefresh.ts';

/** All resources of the inventory, each with the number of its records that the reader may see. */
export function InventoryPage() {
  const { data, error, refetch } = useQuery(resourcesQuery);
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <h1 className={classes.title}>Inventory</h1>
        <div className={classes.headActions}>
          <PageLink className={classes.link} to="/inventory/imports">
            Imports
          </PageLink>
          <ImportButton />
        </div>
      </div>
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {!data && !error && <Reading height={320} label="Loading the resources" />}
      <div className={classes.groups}>
        {groupsOf(data?.items ?? []).map(({ title, resources }) => (
          <section key={title} className={classes.group} aria-label={title}>
            <h2 className={classes.groupTitle}>{title}</h2>
            <ul className={classes.resources}>
              {resources.map((resource) => (
                <ResourceEntry key={resource.name} resource={resource} />
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  );
}

function ResourceEntry({ resource }: { resource: Resource }) {
  const { data: count } = useQuery(recordCountQuery(resource.name));
  useCountRefresh(resource);
  return (
    <li className={classes.resource}>
      <PageLink
        className={classes.link}
        to="/inventory/$resource"
        params={{ resource: resource.name }}
      >
        {titleOf(resource)}
      </PageLink>
      <span className={classes.muted}>{count && countText(count, ['', '']).trim()}</span>
    </li>
  );
}
