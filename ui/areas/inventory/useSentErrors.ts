import { useMemo, useState } from 'react';
import { problemFields, type FieldError } from '../../parts/problems.ts';
import type { RecordValues } from './recordSchema.ts';

const NO_ERRORS: readonly FieldError[] = [];

/**
 * What was found at fields when saving, while the form is as it was sent: later it is for the plan to say. A conflict
 * with another record is at its field, too.
 */
export function useSentErrors(problem: unknown, sent: RecordValues): readonly FieldError[] {
  const values = JSON.stringify(sent);
  const [refused, setRefused] = useState({ problem, values });
  if (refused.problem !== problem) setRefused({ problem, values });
  const found = useMemo(() => {
    const { errors, conflicts = [] } = problemFields(problem);
    const atFields = conflicts.flatMap(({ pointer, message }) =>
      pointer === null ? [] : [{ pointer, detail: message }],
    );
    return [...errors, ...atFields];
  }, [problem]);
  return refused.values === values ? found : NO_ERRORS;
}
