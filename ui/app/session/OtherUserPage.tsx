import { Button, Group, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { CardPage } from './CardPage.tsx';

/** Another account has signed in in this browser. The pages of the former one are not for it to read. */
export default function OtherUserPage() {
  const queryClient = useQueryClient();
  useEffect(() => queryClient.clear(), [queryClient]);
  return (
    <CardPage title="Another user has signed in">
      <Text size="sm" role="alert">
        Another account has signed in with this browser. Reload the page to continue with it.
      </Text>
      <Group>
        <Button onClick={() => location.reload()}>Reload the page</Button>
      </Group>
    </CardPage>
  );
}
