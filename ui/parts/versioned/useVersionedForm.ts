import { useLayoutEffect, useRef, useState } from 'react';
import { isSameValue } from '../diff/change.ts';
import { problemFields } from '../problems.ts';
import { compareThree, mergeWith, type Choices, type MergedField } from './merge.ts';

/** A record as a form edits it, and the ETag of the version that was read. */
export type Versioned<Values extends Record<string, unknown>> = { values: Values; etag: string };

type Options<Values extends Record<string, unknown>> = {
  /** The record as it is read now. A form that nobody has changed follows it. */
  record: Versioned<Values>;
  /**
   * Saves with `If-Match`; `started` has the values that the form started from. Returns the record as it is
   * then. Error: a problem; 412 if it has another version.
   */
  save: (values: Values, etag: string, started: Values) => Promise<Versioned<Values>>;
  /** Reads the record again, after a 412. */
  readAgain: () => Promise<Versioned<Values>>;
};

/** The record was changed by others since it was read. */
export type VersionConflict = { fields: readonly MergedField[] };

/** What has come of saving: `typedOn` if the form has got changes in the meantime, which are not saved. */
export type Saving = 'saved' | 'typedOn' | 'failed';

type State<Values extends Record<string, unknown>> = {
  base: Versioned<Values>;
  values: Values;
  /** The ETag of the record that was read last: after saving, an older one is read until the next read. */
  read: string;
};

const startFrom = <Values extends Record<string, unknown>>(
  record: Versioned<Values>,
  read: string,
): State<Values> => ({ base: record, values: record.values, read });

const hasChanges = (one: object, other: object): boolean => !isSameValue(one, other);

/**
 * A form that keeps the version it started from. What is typed is never overwritten: when others have
 * changed the record, `conflict` has the three states of each field, and nothing is lost.
 */
export function useVersionedForm<Values extends Record<string, unknown>>(options: Options<Values>) {
  const { record, save, readAgain } = options;
  const [state, setState] = useState(() => startFrom(record, record.etag));
  const latest = useRef(state);
  useLayoutEffect(() => void (latest.current = state));
  const [theirs, setTheirs] = useState<Versioned<Values>>();
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const isDirty = hasChanges(state.base.values, state.values);
  // Read again while nothing is typed: the form shows what is there now.
  const isRead = record.etag !== state.read && record.etag !== state.base.etag;
  if (isRead && !isDirty && !isBusy && !theirs) setState(startFrom(record, record.etag));

  async function send(values: Values, base: Versioned<Values>): Promise<Saving> {
    setBusy(true);
    setProblem(undefined);
    try {
      const saved = await save(values, base.etag, base.values);
      setTheirs(undefined);
      setState(({ values: typed, read }) => ({
        base: saved,
        // The fields of the merged record are those of the form.
        values: mergeWith(compareThree(values, typed, saved.values), {}) as Values,
        read,
      }));
      return hasChanges(values, latest.current.values) ? 'typedOn' : 'saved';
    } catch (error) {
      if (problemFields(error).status === 412) setTheirs(await readAgain().catch(() => undefined));
      setProblem(error);
      return 'failed';
    } finally {
      setBusy(false);
    }
  }

  const fields = theirs ? compareThree(state.base.values, state.values, theirs.values) : [];
  return {
    values: state.values,
    /** The values that the form started from. */
    started: state.base.values,
    setValues: (values: Values) => setState((old) => ({ ...old, values })),
    set: <Field extends keyof Values>(field: Field, value: Values[Field]) =>
      setState((old) => ({ ...old, values: { ...old.values, [field]: value } })),
    isDirty,
    isBusy,
    problem,
    conflict: theirs ? { fields } : undefined,
    submit: () => send(state.values, state.base),
    /** Forgets what was typed. */
    reset: () =>
      setState(({ base, read }) => startFrom(record.etag === read ? base : record, record.etag)),
    /** Saves your changes on what the record is now. */
    resolve: (choices: Choices): Promise<Saving> => {
      if (!theirs) return Promise.resolve('failed');
      const values = mergeWith(fields, choices) as Values;
      setState((old) => ({ ...old, base: theirs, values }));
      return send(values, theirs);
    },
    /** Takes what the record is now instead of what was typed. */
    takeTheirs: () => {
      if (theirs) setState(({ read }) => startFrom(theirs, read));
      setTheirs(undefined);
      setProblem(undefined);
    },
    /** Goes on with the form as it is. */
    dismiss: () => setTheirs(undefined),
  };
}
