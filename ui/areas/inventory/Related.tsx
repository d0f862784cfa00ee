import { useQueries } from '@tanstack/react-query';
import { PageLink } from '../../parts/PageLink.tsx';
import { wordsOfField } from '../../parts/format.ts';
import { countText } from '../../parts/list/ListRows.tsx';
import type { ListCount } from '../../parts/list/useList.ts';
import { Section } from '../../parts/Section.tsx';
import classes from './Inventory.module.css';
import { recordCountQuery, type Resource, type ResourceField } from './inventoryQueries.ts';
import { referrersOf } from './resources.ts';
import { useCountRefresh } from './useCountRefresh.ts';

type Props = { resource: Resource; all: readonly Resource[]; id: string };

/** The records that refer to this one: how many there are, with links to their lists. */
export function Related({ resource, all, id }: Props) {
  const referrers = referrersOf(resource.name, all);
  const counts = useQueries({
    queries: referrers.map((each) =>
      recordCountQuery(each.resource.name, { [each.field.name]: [id] }),
    ),
  });
  if (referrers.length === 0) return null;
  const isNothing = counts.every(({ data }) => data?.value === 0);
  return (
    <Section title="Related">
      {isNothing && <p className={classes.muted}>No record refers to it.</p>}
      <ul className={classes.related}>
        {referrers.map((referrer, at) => (
          <Referrer
            key={`${referrer.resource.name} ${referrer.field.name}`}
            {...referrer}
            isOnly={referrers.filter((each) => each.resource === referrer.resource).length === 1}
            id={id}
            count={counts[at]?.data ?? undefined}
          />
        ))}
      </ul>
    </Section>
  );
}

type ReferrerProps = {
  resource: Resource;
  field: ResourceField;
  isOnly: boolean;
  id: string;
  count: ListCount | undefined;
};

function Referrer({ resource, field, isOnly, id, count }: ReferrerProps) {
  useCountRefresh(resource, { [field.name]: [id] });
  if (count?.value === 0) return null;
  return (
    <li>
      <PageLink
        className={classes.link}
        to="/inventory/$resource"
        params={{ resource: resource.name }}
        search={{ [field.name]: id }}
      >
        {count ? countText(count, [resource.singular, resource.plural]) : resource.plural}
      </PageLink>
      {!isOnly && <span className={classes.muted}> by {wordsOfField(field.name)}</span>}
    </li>
  );
}
