import type { NotificationData } from '@mantine/notifications';
import { toProblem } from './problem.ts';

/** The first page needs none, so they are loaded when one is shown. */
const show = (data: NotificationData): void =>
  void import('@mantine/notifications')
    .then(({ notifications }) => notifications.show(data))
    // Without the part that shows it, there is nowhere to say so.
    .catch(() => undefined);

/** Shows why something that the user started has failed, where no form can show it. */
export function notifyProblem(error: unknown): void {
  const { title, detail, code, requestId } = toProblem(error);
  const request = requestId === undefined ? '' : `, request ${requestId}`;
  show({
    color: 'red',
    title,
    message: `${detail} (${code}${request})`,
    autoClose: 15_000,
  });
}

/** Says what has come of something that the user started. */
export const notifyOutcome = (title: string, message: string): void =>
  show({ title, message, autoClose: 15_000 });
