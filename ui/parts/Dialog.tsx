import { Modal, type ModalProps } from '@mantine/core';
import { createContext, use, useLayoutEffect, useState, type SyntheticEvent } from 'react';
import { useReturnedFocus } from './useReturnedFocus.ts';

const BusyContext = createContext<((isBusy: boolean) => void) | undefined>(undefined);

/** Keeps the dialog around a form open while its request runs: what becomes of it is shown there. */
export function useBusyDialog(isBusy: boolean): void {
  const setBusy = use(BusyContext);
  useLayoutEffect(() => {
    if (!isBusy) return undefined;
    setBusy?.(true);
    return () => setBusy?.(false);
  }, [isBusy, setBusy]);
}

/** For React, a dialog is in the form that opens it. It is not in the document: its submit is not that of the form. */
const keepSubmit = (event: SyntheticEvent): void => event.stopPropagation();

/**
 * A dialog. The focus stays in it, and returns to where it was, also if it is removed while it is open. A click
 * outside does not close it unless it says so: what is typed would be lost.
 */
export function Dialog({ onClose, closeOnClickOutside = false, children, ...props }: ModalProps) {
  useReturnedFocus(props.opened);
  const [isBusy, setBusy] = useState(false);
  return (
    <Modal
      {...props}
      closeOnClickOutside={closeOnClickOutside}
      closeButtonProps={{ 'aria-label': 'Close', disabled: isBusy }}
      onClose={() => {
        if (!isBusy) onClose();
      }}
      onSubmit={keepSubmit}
    >
      <BusyContext value={setBusy}>{children}</BusyContext>
    </Modal>
  );
}
