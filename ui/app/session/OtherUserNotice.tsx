import { Button, Group, Stack, Text } from '@mantine/core';
import { Dialog } from '../../parts/Dialog.tsx';

/** Another account has signed in in this browser, and the session is its own now. */
export default function OtherUserNotice() {
  return (
    <Dialog
      opened
      onClose={() => undefined}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      title="Another user has signed in"
    >
      <Stack gap="md">
        <Text size="sm">
          Another account has signed in in this browser. Reload the page to continue with it.
        </Text>
        <Group>
          <Button onClick={() => location.reload()}>Reload the page</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
