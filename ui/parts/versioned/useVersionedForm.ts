import { useState } from 'react';
import { isSameValue } from '../diff/change.ts';
import { problemFields } from '../problems.ts';
import { compareThree, mergeWith, type Choices, type MergedField } from './merge.ts';

/** A record as a form edits it, and the ETag of the version that was read. */
export type Versioned<Values extends Record<string, unknown>> = { values: Values; etag: string };

type Options<Values extends Record<string, unknown>> = {
  /** The record as it is read now. A form that nobody has changed follows it. */
  record: Versioned<Values>;
  /** Saves with `If-Match`. Error: a problem; 412 if the record has another version. */
  save: (values: Values, etag: string) => Promise<unknown>;
  /** Reads the record again, after a 412. */
  readAgain: () => Promise<Versioned<Values>>;
};

/** The record was changed by others since it was read. */
export type VersionConflict = { fields: readonly MergedField[] };

type State<Values extends Record<string, unknown>> = { base: Versioned<Values>; values: Values };

const hasChanges = (one: object, other: object): boolean => !isSameValue(one, other);

/**
 * A form that keeps the version it started from. What is typed is never overwritten: when others have
 * changed the record, `conflict` has the three states of each field, and nothing is lost.
 */
export function useVersionedForm<Values extends Record<string, unknown>>(options: Options<Values>) {
  const { record, save, readAgain } = options;
  const [state, setState] = useState<State<Values>>({ base: record, values: record.values });
  const [theirs, setTheirs] = useState<Versioned<Values>>();
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const isDirty = hasChanges(state.base.values, state.values);
  // Read again while nothing is typed: the form shows what is there now.
  if (!isDirty && !isBusy && record.etag !== state.base.etag && !theirs)
    setState({ base: record, values: record.values });

  async function send(values: Values, base: Versioned<Values>): Promise<boolean> {
    setBusy(true);
    setProblem(undefined);
    try {
      await save(values, base.etag);
      setTheirs(undefined);
      setState({ base: { ...base, values }, values });
      return true;
    } catch (error) {
      if (problemFields(error).status === 412) setTheirs(await readAgain().catch(() => undefined));
      setProblem(error);
      return false;
    } finally {
      setBusy(false);
    }
  }

  const fields = theirs ? compareThree(state.base.values, state.values, theirs.values) : [];
  return {
    values: state.values,
    setValues: (values: Values) => setState(({ base }) => ({ base, values })),
    set: <Field extends keyof Values>(field: Field, value: Values[Field]) =>
      setState(({ base, values }) => ({ base, values: { ...values, [field]: value } })),
    isDirty,
    isBusy,
    problem,
    conflict: theirs ? { fields } : undefined,
    submit: () => send(state.values, state.base),
    /** Forgets what was typed. */
    reset: () => setState({ base: record, values: record.values }),
    /** Saves your changes on what the record is now. */
    resolve: (choices: Choices) => {
      if (!theirs) return Promise.resolve(false);
      // The fields of the merged record are those of the form.
      const values = mergeWith(fields, choices) as Values;
      setState({ base: theirs, values });
      return send(values, theirs);
    },
    /** Takes what the record is now instead of what was typed. */
    takeTheirs: () => {
      if (theirs) setState({ base: theirs, values: theirs.values });
      setTheirs(undefined);
      setProblem(undefined);
    },
    /** Goes on with the form as it is. */
    dismiss: () => setTheirs(undefined),
  };
}
