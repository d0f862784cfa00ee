import { Exact } from './Exact.tsx';
import { labelOf, personOf, type Names } from './names.ts';
import { RecordLink } from './RecordLink.tsx';
import { chosenKindOf, hasNoPage, isRecordId } from './recordIds.ts';

type Props = { subject: { type: string; id: string }; names: Names | undefined };

/** What an event or an entry of the audit log is about: a record by its name, or what has no page by its kind. */
export function Subject({ subject: { id, type }, names }: Props) {
  const label = labelOf(names, id) ?? personOf(names, id)?.displayName;
  const chosen = chosenKindOf(type);
  if (chosen !== undefined) return <RecordLink id={id} label={label ?? id} kind={chosen} />;
  if (isRecordId(id) && !hasNoPage(id)) return <RecordLink id={id} label={label} names={names} />;
  return <Exact text={label ?? `${type} ${id}`} />;
}
