import { notifications } from '@mantine/notifications';
import { toProblem } from './problem.ts';

/** Shows why something that the user started has failed, where no form can show it. */
export function notifyProblem(error: unknown): void {
  const { title, detail, code, requestId } = toProblem(error);
  const request = requestId === undefined ? '' : `, request ${requestId}`;
  notifications.show({
    color: 'red',
    title,
    message: `${detail} (${code}${request})`,
    autoClose: 15_000,
  });
}

/** Shows that something is done whose result is not on the page. */
export const notifyDone = (message: string): void => void notifications.show({ message });
