import { useQuery } from '@tanstack/react-query';
import { PageLink } from '../../parts/PageLink.tsx';
import { labelOfField } from '../../parts/format.ts';
import { countText } from '../../parts/list/ListRows.tsx';
import { Section } from '../../parts/Section.tsx';
import classes from './Inventory.module.css';
import { recordCountQuery, type Resource, type ResourceField } from './inventoryQueries.ts';
import { referrersOf } from './resources.ts';

type Props = { resource: Resource; all: readonly Resource[]; id: string };

/** The records that refer to this one: how many there are, with links to their lists. */
export function Related({ resource, all, id }: Props) {
  const referrers = referrersOf(resource.name, all);
  if (referrers.length === 0) return null;
  return (
    <Section title="Related">
      <ul className={classes.related}>
        {referrers.map((referrer) => (
          <Referrer
            key={`${referrer.resource.name} ${referrer.field.name}`}
            {...referrer}
            isOnly={referrers.filter((each) => each.resource === referrer.resource).length === 1}
            id={id}
          />
        ))}
      </ul>
    </Section>
  );
}

type ReferrerProps = { resource: Resource; field: ResourceField; isOnly: boolean; id: string };

function Referrer({ resource, field, isOnly, id }: ReferrerProps) {
  const { data: count } = useQuery(recordCountQuery(resource.name, { [field.name]: [id] }));
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
      {!isOnly && (
        <span className={classes.muted}> by {labelOfField(field.name).toLowerCase()}</span>
      )}
    </li>
  );
}
