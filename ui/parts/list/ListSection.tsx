import { Section } from '../Section.tsx';
import {
  countText,
  ListFilters,
  ListRows,
  OutdatedNotice,
  RefusedFilters,
  type ListProps,
} from './ListRows.tsx';
import { refusedOf } from './refused.ts';
import classes from './ListRows.module.css';

/** A list in a section of the page of a record, such as the runs of a schedule. */
export function ListSection<Row>(props: ListProps<Row>) {
  const { title, noun, list, actions, filters, search, onSearch } = props;
  const refused = refusedOf(filters, search, list.error);
  if (refused.length > 0)
    return (
      <Section title={title}>
        <RefusedFilters {...{ refused, noun, search, onSearch }} />
      </Section>
    );
  return (
    <Section title={title} note={list.count && countText(list.count, noun)} actions={actions}>
      <ListFilters {...props} />
      <OutdatedNotice list={list} />
      <div className={classes.section}>
        <ListRows {...props} />
      </div>
    </Section>
  );
}
