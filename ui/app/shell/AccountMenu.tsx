import { ActionIcon, Menu } from '@mantine/core';
import { useRouter } from '@tanstack/react-router';
import { Icon } from '../../parts/icons.tsx';
import { setPreferences, useStoredPreferences } from '../preferences.tsx';
import { useSession } from '../session/useSession.ts';
import classes from './AccountMenu.module.css';

/** The page of the account, if the console has one. */
const ACCOUNT_PAGE = '/account';

/** Who is signed in, what they prefer in this browser, and signing out. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { user, isGateway } = useSession();
  const { routesByPath, navigate } = useRouter();
  return (
    <Menu position="bottom-end" width={250} closeOnItemClick={false}>
      <Menu.Target>
        <ActionIcon size="md" aria-label={`Account of ${user.displayName}`}>
          <Icon name="user" size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <span className={classes.name}>{user.displayName}</span>
          {user.username !== user.displayName && user.username}
        </Menu.Label>
        {ACCOUNT_PAGE in routesByPath && (
          <Menu.Item
            leftSection={<Icon name="key" />}
            closeMenuOnClick
            onClick={() => void navigate({ to: ACCOUNT_PAGE })}
          >
            {isGateway ? 'Account' : 'Account and tokens'}
          </Menu.Item>
        )}
        <Menu.Divider />
        <PreferenceItems />
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="help" />} closeMenuOnClick onClick={onHelp}>
          Keys and guides
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="link" />} component="a" href="/api/docs">
          API reference
        </Menu.Item>
        {!isGateway && <SignOut />}
      </Menu.Dropdown>
    </Menu>
  );
}

function PreferenceItems() {
  const { utc, density, singleKeys } = useStoredPreferences();
  const choices = [
    { label: 'Times in UTC', isOn: utc, turn: () => setPreferences({ utc: !utc }) },
    {
      label: 'Higher rows',
      isOn: density === 'comfortable',
      turn: () => setPreferences({ density: density === 'compact' ? 'comfortable' : 'compact' }),
    },
    {
      label: 'Single keys',
      isOn: singleKeys,
      turn: () => setPreferences({ singleKeys: !singleKeys }),
    },
  ];
  return choices.map(({ label, isOn, turn }) => (
    <Menu.CheckboxItem key={label} checked={isOn} onChange={turn}>
      {label}
    </Menu.CheckboxItem>
  ));
}

function SignOut() {
  const { signOut } = useSession();
  return (
    <Menu.Item leftSection={<Icon name="logout" />} onClick={() => void signOut()}>
      Sign out
    </Menu.Item>
  );
}
