import { Button, Menu } from '@mantine/core';
import { useMatch, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { LIST_PATTERN, sharePermissionOf } from '../../../domain/views/views.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { Icon } from '../../parts/icons.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import type { ViewsProps } from '../../parts/list/viewsSlot.ts';
import { ConflictDialog } from '../../parts/versioned/ConflictDialog.tsx';
import { notifyProblem } from '../notify.ts';
import { useSession } from '../session/useSession.ts';
import { RenameViewDialog } from './RenameViewDialog.tsx';
import { SaveViewDialog } from './SaveViewDialog.tsx';
import { useSaveShown } from './useSaveShown.ts';
import { useViewActions, useViews, type View } from './useViews.ts';
import { differs, searchOf, VIEW_PARAMETER } from './viewSearch.ts';
import classes from './ViewsMenu.module.css';

const LISTS = new RegExp(LIST_PATTERN);

/** Saved views of the list: opens, saves and changes them. */
export default function ViewsMenu(props: ViewsProps) {
  // Not the address, which is that of the next page while it loads.
  const list = useMatch({ strict: false, select: ({ pathname }) => pathname });
  return LISTS.test(list) ? <Views key={list} list={list} {...props} /> : null;
}

type Props = ViewsProps & { list: string };

type Dialog = 'save' | 'rename' | 'delete';

/** Opens the list with the default view, if its address asks for nothing. Once: filters can be cleared. */
function useDefaultView(views: readonly View[] | undefined, { search, onSearch }: ViewsProps) {
  const isBare = useRouterState({ select: ({ location }) => location.searchStr === '' });
  const isDone = useRef(false);
  useEffect(() => {
    if (isDone.current || views === undefined) return;
    isDone.current = true;
    const found = views.find(({ isDefault }) => isDefault);
    if (isBare && found) onSearch(searchOf(found, search));
  }, [views, isBare, search, onSearch]);
}

function Views({ list, search, onSearch }: Props) {
  const { data } = useViews(list);
  const [dialog, setDialog] = useState<Dialog>();
  const { whyNot } = useSession();
  const whyNotShare = whyNot(sharePermissionOf(list));
  useDefaultView(data?.items, { search, onSearch });
  const views = data?.items ?? [];
  const present = views.find(({ id }) => id === search[VIEW_PARAMETER]);
  const show = (view: View) => onSearch(searchOf(view, search));
  const shown = useSaveShown({ present, search, open: show });
  const open = (view: View) => {
    shown.start(view);
    show(view);
  };
  return (
    <>
      {data && (
        <ListMenu
          {...{ views, present, search, whyNotShare }}
          onOpen={open}
          onSave={shown.save}
          onDialog={setDialog}
        />
      )}
      {/* Also while the views of another tenant are read: a name may be typed. */}
      <Dialogs
        {...{ list, search, onSearch, whyNotShare, present, dialog, open }}
        close={() => setDialog(undefined)}
      />
      <ConflictDialog
        conflict={shown.conflict}
        title={`${present?.name ?? 'The view'} has changed since you opened it`}
        back="Back to the list"
        busy={shown.isBusy}
        onSave={shown.resolve}
        onDiscard={shown.takeTheirs}
        onClose={shown.dismiss}
      />
    </>
  );
}

type ListMenuProps = Omit<PresentProps, 'view'> & {
  views: readonly View[];
  present: View | undefined;
  onOpen: (view: View) => void;
};

/** The views of a list, and what can be done with the present one. */
function ListMenu({ views, present, onOpen, ...props }: ListMenuProps) {
  return (
    <Menu position="bottom-start" width={270} shadow="md" withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <Button variant="default" size="compact-sm" leftSection={<Icon name="list" size={14} />}>
          <Present view={present} search={props.search} />
        </Button>
      </Menu.Target>
      <Menu.Dropdown className={classes.menu}>
        <ViewItems title="My views" views={views.filter((view) => !view.shared)} onOpen={onOpen} />
        <ViewItems title="Shared" views={views.filter((view) => view.shared)} onOpen={onOpen} />
        {views.length > 0 && <Menu.Divider />}
        {present && <PresentItems view={present} {...props} />}
        <Menu.Item leftSection={<Icon name="plus" />} onClick={() => props.onDialog('save')}>
          Save as a new view …
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

type DialogsProps = Props & {
  dialog: Dialog | undefined;
  present: View | undefined;
  whyNotShare: string | undefined;
  open: (view: View) => void;
  close: () => void;
};

function Dialogs(props: DialogsProps) {
  const { list, search, onSearch, dialog, present, whyNotShare, open, close } = props;
  return (
    <>
      {dialog === 'save' && (
        <SaveViewDialog
          {...{ list, search, whyNotShare }}
          onSaved={(view) => {
            close();
            open(view);
          }}
          onClose={close}
        />
      )}
      {dialog === 'rename' && present && (
        <RenameViewDialog view={present} whyNotShare={whyNotShare} onClose={close} />
      )}
      {present && (
        <DeleteDialog
          view={present}
          isOpen={dialog === 'delete'}
          onClose={close}
          onDeleted={() => {
            close();
            onSearch({ ...search, [VIEW_PARAMETER]: undefined });
          }}
        />
      )}
    </>
  );
}

/** The name of the present view, and whether the list shows something else. */
function Present({ view, search }: { view: View | undefined; search: ListSearch }) {
  if (view === undefined) return 'Views';
  return (
    <span className={classes.present}>
      <span className={classes.name}>
        <Exact text={view.name} />
      </span>
      {differs(view, search) && <span className={classes.changed}>changed</span>}
    </span>
  );
}

type ItemsProps = { title: string; views: readonly View[]; onOpen: (view: View) => void };

function ViewItems({ title, views, onOpen }: ItemsProps) {
  if (views.length === 0) return null;
  return (
    <>
      <Menu.Label>{title}</Menu.Label>
      {views.map((view) => (
        <Menu.Item
          key={view.id}
          onClick={() => onOpen(view)}
          rightSection={view.isDefault && <span className={classes.mark}>default</span>}
        >
          <Exact text={view.name} />
        </Menu.Item>
      ))}
    </>
  );
}

type PresentProps = {
  view: View;
  search: ListSearch;
  whyNotShare: string | undefined;
  onSave: () => void;
  onDialog: (dialog: Dialog) => void;
};

/** What can be done with the present view. */
function PresentItems({ view, search, whyNotShare, onSave, onDialog }: PresentProps) {
  const { setDefault } = useViewActions();
  const canChange = !view.shared || whyNotShare === undefined;
  return (
    <>
      <Menu.Label>
        <Exact text={view.name} />
      </Menu.Label>
      {canChange && (
        <Menu.Item
          leftSection={<Icon name="check" />}
          disabled={!differs(view, search)}
          onClick={onSave}
        >
          Save what the list shows now
        </Menu.Item>
      )}
      {(canChange || view.isOwn) && (
        <Menu.Item leftSection={<Icon name="edit" />} onClick={() => onDialog('rename')}>
          Rename or share …
        </Menu.Item>
      )}
      <Menu.Item
        leftSection={<Icon name="home" />}
        onClick={() => setDefault.mutate(view, { onError: notifyProblem })}
      >
        {view.isDefault ? 'Do not open the list with this view' : 'Open the list with this view'}
      </Menu.Item>
      {(canChange || view.isOwn) && (
        <Menu.Item leftSection={<Icon name="trash" />} onClick={() => onDialog('delete')}>
          Delete …
        </Menu.Item>
      )}
      <Menu.Divider />
    </>
  );
}

type DeleteProps = { view: View; isOpen: boolean; onClose: () => void; onDeleted: () => void };

function DeleteDialog({ view, isOpen, onClose, onDeleted }: DeleteProps) {
  const { remove } = useViewActions();
  return (
    <ConfirmDialog
      opened={isOpen}
      onClose={() => {
        remove.reset();
        onClose();
      }}
      title={`Delete ${view.name}`}
      confirm="Delete view"
      danger
      onConfirm={() => remove.mutate(view, { onSuccess: onDeleted })}
      busy={remove.isPending}
      problem={remove.error}
    >
      {view.shared
        ? 'It is deleted for all who use it. No record is changed.'
        : 'No record is changed.'}
    </ConfirmDialog>
  );
}
