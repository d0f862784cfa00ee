import { Stack, Text, Title } from '@mantine/core';
import { useSession } from '../../app/session/useSession.ts';

/** The first page after signing in. */
export function HomePage() {
  const { user, tenant } = useSession();
  return (
    <Stack gap="xs" p="md">
      <Title order={1}>Home</Title>
      <Text>
        Signed in as {user.displayName}. New records belong to the tenant {tenant}.
      </Text>
    </Stack>
  );
}
