import { ActionIcon, Menu, Text } from '@mantine/core';
import { useSession } from '../session/useSession.ts';
import { UserIcon } from './icons.tsx';

/** Who is signed in, and signing out. */
export function AccountMenu() {
  const { user, tenant, isGateway, signOut } = useSession();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon size="md" aria-label={`Account of ${user.displayName}`}>
          <UserIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" c="var(--mantine-color-text)">
            {user.displayName}
          </Text>
          {user.username} in {tenant}
        </Menu.Label>
        {!isGateway && <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
