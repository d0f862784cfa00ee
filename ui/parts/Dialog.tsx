import { Modal, type ModalProps } from '@mantine/core';
import { useReturnedFocus } from './useReturnedFocus.ts';

/** A dialog. The focus stays in it, and returns to where it was, also if it is removed while it is open. */
export function Dialog(props: ModalProps) {
  useReturnedFocus(props.opened);
  return <Modal {...props} />;
}
