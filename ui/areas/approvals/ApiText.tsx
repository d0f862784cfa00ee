import { RecordLink } from '../../parts/RecordLink.tsx';
import { Actor } from '../../parts/Actor.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { Time } from '../../parts/Time.tsx';
import type { Names } from '../../parts/names.ts';
import { partsOfText } from '../../parts/approvals/words.ts';

/** A text of the API, with names instead of ids and with times in the zone of the reader. */
export function ApiText({ text, names }: { text: string; names: Names }) {
  return partsOfText(text).map((part, index) => {
    // The same text has the same parts.
    if (part.kind === 'words') return <Exact key={index} text={part.text} />;
    if (part.kind === 'time') return <Time key={index} value={part.time} />;
    return part.id.startsWith('usr_') ? (
      <Actor key={index} id={part.id} names={names} full />
    ) : (
      <RecordLink key={index} id={part.id} names={names} />
    );
  });
}
