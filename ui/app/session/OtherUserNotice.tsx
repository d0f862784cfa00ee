import { Button, Group, Modal, Stack, Text } from '@mantine/core';

/** Another account has signed in in this browser, and the session is its own now. */
export default function OtherUserNotice() {
  return (
    <Modal
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
    </Modal>
  );
}
