import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Reading } from '../../parts/Reading.tsx';

type Props = {
  parent: { label: string; to: string };
  title: string;
  id: string;
  error: unknown;
  retry: () => unknown;
};

/** The page of a record that is not read yet, or cannot be read. */
export function UnreadRecord({ parent, title, id, error, retry }: Props) {
  return (
    <RecordPage parent={parent} title={title} id={id}>
      {error ? (
        <ProblemNote problem={error} retry={() => void retry()} />
      ) : (
        <Reading height={240} label="Loading the record" />
      )}
    </RecordPage>
  );
}
