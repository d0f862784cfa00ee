import { useDisclosure } from '@mantine/hooks';
import { Outlet, useMatches, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { WidthStoreProvider } from '../../parts/grid/widths.ts';
import { ViewsMenuProvider } from '../../parts/list/viewsSlot.ts';
import { widthsOf } from '../columnWidths.ts';
import { NoAccess } from '../../parts/NoAccess.tsx';
import { useHealth } from '../health.ts';
import { useLiveRefresh, useLiveStream } from '../live.ts';
import { OutageProvider } from '../../parts/outage.tsx';
import { WithToday } from '../../parts/today.tsx';
import { WithPreferences } from '../preferences.tsx';
import { SUMMARY_KEY } from '../session/tenant.ts';
import { useSession } from '../session/useSession.ts';
import { useKeyboard, useShortcuts } from '../shortcuts.ts';
import { titled } from '../useTitle.ts';
import { lazyViewsMenu } from '../views/lazyViewsMenu.tsx';
import { lazyDialog, lazyPart, type FailedProps } from './lazyPart.tsx';
import { OutageBanner } from './OutageBanner.tsx';
import { Rail } from './Rail.tsx';
import { TopBar } from './TopBar.tsx';
import { useNavigationEntries } from './useNavigationEntries.ts';
import classes from './Shell.module.css';

const loadPalette = () => import('./Palette.tsx');
const Palette = lazyDialog(loadPalette);
const RailDrawer = lazyDialog(() => import('./RailDrawer.tsx'));
const KeysDialog = lazyDialog(() => import('./KeysDialog.tsx'));
const Notices = lazyPart(() => import('./Notices.tsx'), { Failed: LaterNotices });

const NOTICES_AGAIN_MS = 15_000;

function LaterNotices({ retry }: FailedProps) {
  const latest = useRef(retry);
  useEffect(() => {
    const timer = setTimeout(() => latest.current(), NOTICES_AGAIN_MS);
    return () => clearTimeout(timer);
  }, []);
  return null;
}

const MAIN = 'main';

/** The frame around every page: bar, rail, and the page. On narrow screens the rail is a drawer. */
export function Shell() {
  const [isDrawerOpen, drawer] = useDisclosure(false);
  const [isPaletteOpen, palette] = useDisclosure(false);
  const [isHelpOpen, help] = useDisclosure(false);
  const main = useRef<HTMLElement>(null);
  const { user, hasAllEvents } = useSession();
  const widthStore = useMemo(() => widthsOf(user.id), [user.id]);
  const outage = useHealth()?.outage;
  const isAway = outage !== undefined && outage !== 'temporal';
  usePageChange(main);
  useLiveStream(hasAllEvents);
  useLiveRefresh(['rbac.*'], SUMMARY_KEY);
  useKeyboard();
  useFrameKeys({ onSearch: palette.open, onHelp: help.open });
  usePreloadedPalette();
  return (
    <WithPreferences>
      <WithToday>
        <div className={classes.shell}>
          <a className={classes.skip} href={`#${MAIN}`} onClick={() => main.current?.focus()}>
            Skip to the content
          </a>
          <TopBar onMenu={drawer.open} onSearch={palette.open} onHelp={help.open} isAway={isAway} />
          <OutageBanner outage={outage} />
          <div className={classes.rail}>
            <Rail />
          </div>
          <main id={MAIN} ref={main} tabIndex={-1} className={classes.main}>
            <OutageProvider value={isAway}>
              <WidthStoreProvider value={widthStore}>
                <ViewsMenuProvider value={lazyViewsMenu}>
                  <Page />
                </ViewsMenuProvider>
              </WidthStoreProvider>
            </OutageProvider>
          </main>
        </div>
        {isDrawerOpen && <RailDrawer onClose={drawer.close} />}
        {isPaletteOpen && <Palette onClose={palette.close} />}
        {isHelpOpen && <KeysDialog onClose={help.close} />}
        <Notices />
      </WithToday>
    </WithPreferences>
  );
}

/** The page, or why it has nothing for the user: before it asks the service for what is refused. */
function Page() {
  const { canAnywhere } = useSession();
  const id = useMatches({ select: (matches) => matches.at(-1)?.id });
  const {
    title,
    navigation,
    needs = navigation?.permissions ?? [],
  } = useMatches({
    select: (matches) => matches.at(-1)?.staticData ?? {},
  });
  const [openId, setOpenId] = useState<string>();
  const isAllowed = needs.length === 0 || needs.some(canAnywhere);
  if (isAllowed && openId !== id) setOpenId(id);
  if (!isAllowed && openId !== undefined && openId !== id) setOpenId(undefined);
  // An open page stays, with what is typed, when its user has lost the right to it.
  if (isAllowed || openId === id) return <Outlet />;
  return (
    <div className={classes.refused}>
      <h1 className={classes.title}>{title}</h1>
      <NoAccess isPage title={title} permissions={needs} />
    </div>
  );
}

const PRELOAD_MS = 1_500;

/** Loads the palette after the page: what is typed right after its key must not be lost. */
function usePreloadedPalette(): void {
  useEffect(() => {
    const timer = setTimeout(() => void loadPalette().catch(() => undefined), PRELOAD_MS);
    return () => clearTimeout(timer);
  }, []);
}

/** `g` and a key open a page, `/` searches, `?` lists the keys. */
function useFrameKeys({ onSearch, onHelp }: { onSearch: () => void; onHelp: () => void }): void {
  const { navigate } = useRouter();
  const entries = useNavigationEntries();
  useShortcuts([
    { keys: 'Mod+k', label: 'Search', run: onSearch },
    { keys: '/', label: 'Search', run: onSearch },
    { keys: '?', label: 'Show the keys', run: onHelp },
    ...entries.map(({ key, label, to }) => ({
      keys: `g ${key}`,
      label,
      run: () => void navigate({ to }),
    })),
  ]);
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
