import { CatchBoundary } from '@tanstack/react-router';
import { Suspense, useEffect, type ReactNode } from 'react';
import { notifyProblem } from '../notify.ts';
import { isMissingPart, reloadIfOutdated } from '../reload.ts';

type Props = { onClose: () => void; children: ReactNode };

/** A dialog of the frame that is loaded when it is opened. The page stays if that fails. */
export function LazyDialog({ onClose, children }: Props) {
  const Failed = ({ error }: { error: unknown }) => {
    useEffect(() => {
      notifyProblem(error);
      onClose();
      if (isMissingPart(error)) void reloadIfOutdated();
    }, [error]);
    return null;
  };
  return (
    <CatchBoundary getResetKey={() => 0} errorComponent={Failed}>
      <Suspense>{children}</Suspense>
    </CatchBoundary>
  );
}
