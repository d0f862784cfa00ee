import { Modal, type ModalProps } from '@mantine/core';
import type { SyntheticEvent } from 'react';
import { useReturnedFocus } from './useReturnedFocus.ts';

/** For React, a dialog is in the form that opens it. It is not in the document: its submit is not that of the form. */
const keepSubmit = (event: SyntheticEvent): void => event.stopPropagation();

/** A dialog. The focus stays in it, and returns to where it was, also if it is removed while it is open. */
export function Dialog(props: ModalProps) {
  useReturnedFocus(props.opened);
  return <Modal {...props} onSubmit={keepSubmit} />;
}
