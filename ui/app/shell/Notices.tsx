import { Notifications } from '@mantine/notifications';

/** What `notify.ts` shows. It is loaded after the page. */
export default function Notices() {
  return <Notifications position="bottom-right" />;
}
