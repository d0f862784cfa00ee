import { useRef, useState } from 'react';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';

/**
 * What is typed for a new record. `guard`, which the page shows, asks before it is lost; after `allowLeave` it is
 * saved, and nothing asks.
 */
export function useDraft<Draft extends object>(makeStart: () => Draft) {
  const [start] = useState(makeStart);
  const [draft, setDraft] = useState(start);
  const isSaved = useRef(false);
  return {
    draft,
    change: (fields: Partial<Draft>) => setDraft((old) => ({ ...old, ...fields })),
    allowLeave: () => {
      isSaved.current = true;
    },
    guard: (
      <LeaveGuard
        hasChanges={() => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(start)}
      />
    ),
  };
}
