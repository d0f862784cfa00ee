import { useState } from 'react';
import type { ListSearch } from '../../parts/list/search.ts';
import { problemFields } from '../../parts/problems.ts';
import { compareThree, mergeWith, type Choices } from '../../parts/versioned/merge.ts';
import { notifyProblem } from '../notify.ts';
import { etagOf, readView, useViewActions, type View } from './useViews.ts';
import { contentOf, type Content } from './viewSearch.ts';

type Options = {
  /** The view as it is read now. */
  present: View | undefined;
  search: ListSearch;
  /** Shows what a view has. */
  open: (view: View) => void;
};

const isSet = (entry: [string, unknown]): entry is [string, string] => entry[1] !== undefined;

/** A parameter that is removed has no value. */
const withoutRemoved = (merged: Readonly<Record<string, unknown>>): Content =>
  Object.fromEntries(Object.entries(merged).filter(isSet));

/**
 * Saves what a list shows in its view. The view counts as it was when the list was opened with it: when others
 * have changed what it shows since, `conflict` has the three states of each parameter, and nothing is saved.
 */
export function useSaveShown({ present, search, open }: Options) {
  const { update } = useViewActions();
  const [started, setStarted] = useState(present);
  const [theirs, setTheirs] = useState<View>();
  if (present?.id !== started?.id) setStarted(present);
  const shown = contentOf(search);
  const compareWith = (view: View) => compareThree(started?.search ?? {}, shown, view.search);
  const fields = theirs ? compareWith(theirs) : [];

  async function write(view: View, wanted: Content): Promise<View> {
    const saved = await update.mutateAsync({
      id: view.id,
      etag: etagOf(view),
      change: { search: wanted },
    });
    setStarted(saved);
    return saved;
  }

  /** What others have changed elsewhere, such as the name, stays as it is. */
  async function explain(error: unknown, view: View): Promise<void> {
    const isStale = problemFields(error).status === 412;
    const now = isStale ? await readView(view.id).catch(() => undefined) : undefined;
    if (now === undefined) notifyProblem(error);
    else if (compareWith(now).some(({ changedBy }) => ['others', 'both'].includes(changedBy)))
      setTheirs(now);
    else await write(now, shown).catch(notifyProblem);
  }

  const take = (view: View): void => {
    setTheirs(undefined);
    setStarted(view);
    open(view);
  };

  return {
    isBusy: update.isPending,
    conflict: theirs && { fields },
    /** The list is opened with a view: it counts as it is now. */
    start: setStarted,
    save: () => {
      if (!started) return;
      void write(started, shown).catch((error: unknown) => explain(error, started));
    },
    /** Saves the merged parameters in the view as it is now, and shows them. */
    resolve: (choices: Choices) => {
      if (!theirs) return;
      const wanted = withoutRemoved(mergeWith(fields, choices));
      void write(theirs, wanted)
        .then(take)
        .catch((error: unknown) => explain(error, theirs));
    },
    takeTheirs: () => theirs && take(theirs),
    dismiss: () => setTheirs(undefined),
  };
}
