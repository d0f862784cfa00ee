import { Section } from '../Section.tsx';
import { countText, ListFilters, ListRows, OutdatedNotice, type ListProps } from './ListRows.tsx';
import classes from './ListRows.module.css';

/** A list in a section of the page of a record, such as the runs of a schedule. */
export function ListSection<Row>(props: ListProps<Row>) {
  const { title, noun, list, actions } = props;
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
