import type { ReactNode } from 'react';
import { Icon, type IconName } from './icons.tsx';
import classes from './Empty.module.css';

/** Why there is nothing: not yet, not for this filter, nothing that you may see, or not set up. */
export type EmptyKind = 'nothing' | 'filtered' | 'hidden' | 'notSetUp';

type Props = {
  kind: EmptyKind;
  title: string;
  detail?: ReactNode;
  /** What the reader can do about it. */
  action?: ReactNode;
  /** The page has nothing else: the title is its heading. */
  isPage?: boolean;
};

const ICONS: Readonly<Record<EmptyKind, IconName>> = {
  nothing: 'inbox',
  filtered: 'filter',
  hidden: 'eyeOff',
  notSetUp: 'settings',
};

/** Says why there is nothing to see, and what can be done. */
export function Empty({ kind, title, detail, action, isPage = false }: Props) {
  const Title = isPage ? 'h1' : 'strong';
  return (
    <div className={classes.empty} role="status">
      <span className={classes.icon}>
        <Icon name={ICONS[kind]} size={28} />
      </span>
      <Title className={classes.title}>{title}</Title>
      {detail !== undefined && <div className={classes.detail}>{detail}</div>}
      {action !== undefined && <div className={classes.action}>{action}</div>}
    </div>
  );
}
