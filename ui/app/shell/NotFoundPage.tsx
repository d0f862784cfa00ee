import { Anchor, Stack, Text, Title } from '@mantine/core';
import { PageLink } from '../../parts/PageLink.tsx';
import { useTitle } from '../useTitle.ts';

/** For an address that is not that of a page. */
export function NotFoundPage() {
  useTitle('Page not found');
  return (
    <Stack gap="sm" p="md" align="flex-start">
      <Title order={1}>Page not found</Title>
      <Text>There is no page at this address.</Text>
      <Anchor component={PageLink} to="/">
        Home
      </Anchor>
    </Stack>
  );
}
