import { useState } from 'react';

/**
 * A question about something that may change while it is shown: `asked` is what it was when the question was
 * opened.
 */
export function useAsked<Subject>(present: Subject) {
  const [asked, setAsked] = useState(present);
  const [isOpen, setOpen] = useState(false);
  return {
    asked,
    isOpen,
    ask: () => {
      setAsked(present);
      setOpen(true);
    },
    close: () => setOpen(false),
  };
}
