import { CatchBoundary } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState, type ComponentType, type ReactNode } from 'react';
import { notifyProblem } from '../notify.ts';
import { isMissingPart, reloadIfOutdated } from '../reload.ts';

export type FailedProps = {
  error: unknown;
  /** Loads the part once more. */
  retry: () => void;
};

type Load<Props> = () => Promise<{ default: ComponentType<Props> }>;

type Options<Props> = {
  /** What is shown until it is loaded. */
  waiting?: ReactNode;
  /** What is shown if it cannot be loaded; `of` are the properties of the part. */
  Failed: ComponentType<FailedProps & { of: Props }>;
};

const Nothing = () => null;

/**
 * A part of the frame that is loaded when it is shown. What is around it stays if that fails, and the part can be
 * loaded again: React itself keeps a failure for good.
 */
export function lazyPart<Props extends object>(
  load: Load<Props>,
  { waiting, Failed }: Options<Props>,
): ComponentType<Props> {
  let latest = lazy(load);
  return function LazyPart(props: Props) {
    const [Part, setPart] = useState(() => latest);
    const [failure, setFailure] = useState<{ error: unknown }>();
    const fail = (error: unknown) => {
      latest = lazy(load);
      setFailure({ error });
    };
    const retry = () => {
      setPart(latest);
      setFailure(undefined);
    };
    if (failure) return <Failed error={failure.error} retry={retry} of={props} />;
    return (
      <CatchBoundary getResetKey={() => Part} onCatch={fail} errorComponent={Nothing}>
        <Suspense fallback={waiting}>
          <Part {...props} />
        </Suspense>
      </CatchBoundary>
    );
  };
}

type Closable = { onClose: () => void };

/** Says that a part cannot be loaded, and closes what would show it. */
export function ClosedPart({ error, of: { onClose } }: FailedProps & { of: Closable }) {
  useEffect(() => {
    notifyProblem(error);
    onClose();
    if (isMissingPart(error)) void reloadIfOutdated();
    // Once: closing it changes the properties.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  return null;
}

/** A dialog of the frame that is loaded when it is opened. The page stays if that fails. */
export const lazyDialog = <Props extends Closable>(load: Load<Props>): ComponentType<Props> =>
  lazyPart(load, { Failed: ClosedPart });
