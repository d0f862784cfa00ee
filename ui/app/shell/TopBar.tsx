import { ActionIcon } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { AccountMenu } from './AccountMenu.tsx';
import { MenuIcon } from './icons.tsx';
import { ThemeToggle } from './ThemeToggle.tsx';
import classes from './TopBar.module.css';

/** The bar above every page. */
export function TopBar({ onMenu }: { onMenu: () => void }) {
  return (
    <header className={classes.bar}>
      <ActionIcon className={classes.menu} onClick={onMenu} aria-label="Pages" size="md">
        <MenuIcon />
      </ActionIcon>
      <Link to="/" className={classes.name}>
        Holdfast
      </Link>
      <div className={classes.space} />
      <ThemeToggle />
      <AccountMenu />
    </header>
  );
}
