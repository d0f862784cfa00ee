import { Drawer } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Outlet, useMatches, useRouterState } from '@tanstack/react-router';
import { useEffect, useLayoutEffect, useRef } from 'react';
import { titled } from '../useTitle.ts';
import { Rail } from './Rail.tsx';
import { TopBar } from './TopBar.tsx';
import classes from './Shell.module.css';

const MAIN = 'main';

/** The frame around every page: bar, rail, and the page. On narrow screens the rail is a drawer. */
export function Shell() {
  const [isOpen, drawer] = useDisclosure(false);
  const main = useRef<HTMLElement>(null);
  usePageChange(main);
  return (
    <div className={classes.shell}>
      <a className={classes.skip} href={`#${MAIN}`} onClick={() => main.current?.focus()}>
        Skip to the content
      </a>
      <TopBar onMenu={drawer.open} />
      <div className={classes.rail}>
        <Rail />
      </div>
      <Drawer opened={isOpen} onClose={drawer.close} size="xs" title="Pages">
        <Rail onNavigate={drawer.close} />
      </Drawer>
      <main id={MAIN} ref={main} tabIndex={-1} className={classes.main}>
        <Outlet />
      </main>
    </div>
  );
}

/** After a navigation to another page, its title is set and the focus goes to it, as with a new document. */
function usePageChange(main: React.RefObject<HTMLElement | null>): void {
  const path = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname });
  const title = useMatches({ select: (matches) => matches.at(-1)?.staticData.title });
  const last = useRef(path);
  // Before the effects of the page, which may set a title of its own.
  useLayoutEffect(() => {
    document.title = titled(title);
  }, [path, title]);
  useEffect(() => {
    if (last.current !== undefined && path !== last.current) main.current?.focus();
    last.current = path;
  }, [path, main]);
}
