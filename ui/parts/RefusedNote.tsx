import { useEffect, useRef } from 'react';
import { otherErrors } from './form/fieldErrors.ts';
import { problemFields } from './problems.ts';
import { ProblemNote } from './ProblemNote.tsx';
import classes from './ProblemNote.module.css';

type Props = {
  /** Why something that was sent has failed; nothing is shown without one. */
  problem: unknown;
  /** Pointers of the fields that show what is wrong with them. */
  shown?: readonly string[];
};

const AROUND = 'form, [role="dialog"], main';
const REFUSED = '[aria-invalid="true"]';

/**
 * Why something that was sent has failed. The focus goes there, or to the first refused field if the fields say it all:
 * both come into view, and Tab goes on from there.
 */
export function RefusedNote({ problem, shown = [] }: Props) {
  const note = useRef<HTMLDivElement>(null);
  const isRefused = problem !== undefined && problem !== null;
  const { errors } = problemFields(problem);
  const isAtFields = errors.length > 0 && otherErrors(errors, shown).length === 0;
  useEffect(() => {
    if (!isRefused) return;
    const around = note.current?.closest(AROUND);
    const field = isAtFields ? around?.querySelector<HTMLElement>(REFUSED) : undefined;
    field?.focus();
    // A field that is disabled or hidden does not take it.
    if (!field || document.activeElement !== field) note.current?.focus();
    // Only for a new answer: the errors are a part of it.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [problem]);
  if (!isRefused) return null;
  return (
    <div ref={note} tabIndex={-1} className={classes.refused}>
      <ProblemNote problem={problem} retry={undefined} withoutFields={isAtFields} />
    </div>
  );
}
