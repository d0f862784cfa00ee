import { ActionIcon, Indicator, Tooltip, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { Icon } from '../../parts/icons.tsx';
import { Kbd } from '../../parts/Kbd.tsx';
import { useLiveState } from '../live.ts';
import { AccountMenu } from './AccountMenu.tsx';
import { GuideLink } from './GuideLink.tsx';
import { TenantMenu } from './TenantMenu.tsx';
import { ThemeToggle } from './ThemeToggle.tsx';
import { useNavigationEntries } from './useNavigationEntries.ts';
import { usePendingApprovals } from './usePendingApprovals.ts';
import logo from '../icon.svg';
import classes from './TopBar.module.css';
import { PageLink } from '../../parts/PageLink.tsx';

type Props = {
  onMenu: () => void;
  onSearch: () => void;
  onHelp: () => void;
  /** The frame says that nothing works. */
  isAway: boolean;
};

/** The bar above every page. */
export function TopBar({ onMenu, onSearch, onHelp, isAway }: Props) {
  return (
    <header className={classes.bar}>
      <ActionIcon className={classes.menu} onClick={onMenu} aria-label="Pages" size="md">
        <Icon name="menu" size={18} />
      </ActionIcon>
      <PageLink to="/" className={classes.name} aria-label="Holdfast">
        <img src={logo} alt="" width={20} height={20} />
        <span className={classes.nameText}>Holdfast</span>
      </PageLink>
      <TenantMenu />
      <div className={classes.search}>
        <UnstyledButton
          className={classes.searchButton}
          onClick={onSearch}
          aria-label="Search"
          aria-keyshortcuts="Control+K Meta+K"
        >
          <Icon name="search" />
          <span className={classes.searchText}>Search</span>
        </UnstyledButton>
        <span className={classes.searchKeys} aria-hidden>
          <Kbd keys="Mod+K" />
        </span>
      </div>
      <div className={classes.space} />
      {!isAway && <Waiting />}
      <Approvals />
      <Tooltip label="Guide of this page">
        <ActionIcon
          className={classes.guide}
          component={GuideLink}
          size="md"
          aria-label="Guide of this page"
        >
          <Icon name="help" size={18} />
        </ActionIcon>
      </Tooltip>
      <ThemeToggle />
      <AccountMenu onHelp={onHelp} />
    </header>
  );
}

/** Says that what is on screen may be old. */
function Waiting() {
  const state = useLiveState();
  const [wasLive, setWasLive] = useState(false);
  if (state === 'live' && !wasLive) setWasLive(true);
  if (!wasLive || state !== 'waiting') return null;
  return (
    <span role="status" className={classes.waiting}>
      <Icon name="alertTriangle" />
      <span className={classes.waitingText}>Not connected</span>
    </span>
  );
}

/** The requests that wait for the user, on the page that has them. */
function Approvals() {
  const entry = useNavigationEntries().find(({ badge }) => badge === 'approvals');
  const pending = usePendingApprovals();
  if (entry === undefined) return null;
  const label = pending === 0 ? entry.label : `${entry.label}: ${pending} to decide`;
  return (
    <Tooltip label={label}>
      <Indicator
        label={pending > 99 ? '99+' : pending}
        disabled={pending === 0}
        size={16}
        offset={5}
      >
        <ActionIcon component={PageLink} to={entry.to} size="md" aria-label={label}>
          <Icon name={entry.icon} size={18} />
        </ActionIcon>
      </Indicator>
    </Tooltip>
  );
}
