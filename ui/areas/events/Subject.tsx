import { Exact } from '../../parts/Exact.tsx';
import { labelOf, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { chosenKindOf, isRecordId } from '../../parts/recordIds.ts';
import type { EventItem } from './eventQueries.ts';

type Props = { subject: EventItem['subject']; names: Names | undefined };

/** The record that an event is about, by its name if the reader may see that. */
export function Subject({ subject: { id, type }, names }: Props) {
  const label = labelOf(names, id);
  if (isRecordId(id)) return <RecordLink id={id} label={label} names={names} />;
  const chosen = chosenKindOf(type);
  if (chosen !== undefined) return <RecordLink id={id} label={label ?? id} kind={chosen} />;
  return <Exact text={label ?? `${type} ${id}`} />;
}
