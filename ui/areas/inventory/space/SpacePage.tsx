import { Button, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { formatBlock } from '../../../../domain/inventory/cidr.ts';
import { Exact } from '../../../parts/Exact.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPicker } from '../../../parts/records/RecordPicker.tsx';
import { Reading } from '../../../parts/Reading.tsx';
import { USAGE_EVENTS } from '../inventoryQueries.ts';
import { ChosenPanel } from './ChosenPanel.tsx';
import { stateOf } from './itemState.ts';
import type { MapItem } from './mapModel.ts';
import { networkOf } from './networks.ts';
import { PrefixMap } from './PrefixMap.tsx';
import { pathQuery, rootOf, SPACE_KEY, type SpacePrefix } from './spaceQueries.ts';
import { SpaceTree } from './SpaceTree.tsx';
import { useMapModel } from './useMapModel.ts';
import { useSpaceTree } from './useSpaceTree.ts';
import classes from './Space.module.css';

const route = getRouteApi('/frame/inventory/prefixes/space');

const NO_PATH: readonly SpacePrefix[] = [];

/** What is chosen: the network in the address, and the prefixes that lead to it. */
function useChosen() {
  const { vrf, at } = route.useSearch();
  const network = at === undefined ? undefined : networkOf(at);
  const cidr = network && formatBlock(network);
  const query = useQuery({
    ...pathQuery(cidr ?? '', vrf),
    enabled: cidr !== undefined,
    placeholderData: keepPreviousData,
  });
  return { network, path: cidr === undefined ? NO_PATH : (query.data ?? NO_PATH), query };
}

/** The prefix that the map shows: the one in the address, or the outermost one around what is chosen. */
function useRoot(path: readonly SpacePrefix[], rows: ReturnType<typeof useSpaceTree>['rows']) {
  const { map } = route.useSearch();
  const [first] = rows ?? [];
  return rootOf(path, map) ?? (first?.kind === 'prefix' ? first.prefix : undefined);
}

/** The prefixes of an address space as a tree and as a map, with the free space between them. */
export function SpacePage() {
  useTitle('Address space');
  const { vrf } = route.useSearch();
  return <Space key={vrf ?? 'global'} />;
}

function Space() {
  const { vrf, at } = route.useSearch();
  const navigate = route.useNavigate();
  const { network, path, query } = useChosen();
  const tree = useSpaceTree(vrf, path, network && formatBlock(network));
  const root = useRoot(path, tree.rows);
  const [shown, setShown] = useState<readonly string[]>([]);
  const map = useMapModel(root, shown, network && formatBlock(network));
  useLiveRefresh(USAGE_EVENTS, SPACE_KEY);
  const choose = (at: string) =>
    void navigate({ search: (old) => ({ ...old, at }), replace: true });
  const chosen: MapItem | undefined = network && map.model?.find(network);
  const isElsewhere = network && root && query.isSuccess && path.length === 0;
  return (
    <div className={classes.page}>
      <Top onFind={choose} />
      {at !== undefined && !network && (
        <p role="status" className={classes.muted}>
          “<Exact text={at} />” is neither an address nor a network.
        </p>
      )}
      {isElsewhere && (
        <p role="status" className={classes.muted}>
          No prefix contains {formatBlock(network)} here.
        </p>
      )}
      {query.error && <ProblemNote problem={query.error} retry={() => void query.refetch()} />}
      <div className={classes.body}>
        <div className={classes.tree}>
          <SpaceTree tree={tree} chosen={chosen?.cidr} onChoose={choose} />
        </div>
        <Side {...{ map, root, chosen }} onChoose={choose} onShown={setShown} />
      </div>
    </div>
  );
}

type SideProps = {
  map: ReturnType<typeof useMapModel>;
  root: SpacePrefix | undefined;
  chosen: MapItem | undefined;
  onChoose: (network: string) => void;
  onShown: (networks: readonly string[]) => void;
};

/** The map, what is missing on it, and what is chosen. */
function Side({ map, root, chosen, onChoose, onShown }: SideProps) {
  const { vrf } = route.useSearch();
  const navigate = route.useNavigate();
  const { model, marks, unread, error, retry } = map;
  const isKnown = model !== undefined && unread.length === 0;
  return (
    <div className={classes.side}>
      {error && <ProblemNote problem={error} retry={retry} hasData={isKnown} />}
      {root && !model && !error && <Reading height={280} label="Loading the map" />}
      {model && marks && (
        <PrefixMap
          key={model.root.prefix.id}
          {...{ model, marks, unread, chosen, onShown }}
          onChoose={(item) => onChoose(item.cidr)}
        />
      )}
      {model && <Missing {...map} />}
      {model && marks && chosen && (
        <ChosenPanel
          item={chosen}
          state={stateOf(chosen, model, marks)}
          path={model.pathTo(chosen)}
          vrf={vrf}
          onChoose={onChoose}
          onShowMap={(id, at) => void navigate({ search: (old) => ({ ...old, map: id, at }) })}
        />
      )}
    </div>
  );
}

type MissingProps = { isPartial: boolean; isDense: boolean; isReading: boolean };

/** What the map does not show, or not yet. */
function Missing({ isPartial, isDense, isReading }: MissingProps) {
  return (
    <>
      {isReading && (
        <p className={classes.muted} role="status">
          What is hatched is still being read.
        </p>
      )}
      {isPartial && (
        <p className={classes.muted}>
          There are more prefixes than one map has: those of what is hatched are read where you zoom
          in.
        </p>
      )}
      {isDense && (
        <p className={classes.muted}>
          Not all addresses are on the map: those of what is hatched are read where you zoom in.
        </p>
      )}
    </>
  );
}

/** Which address space is shown, and where in it. */
function Top({ onFind }: { onFind: (network: string) => void }) {
  const { vrf, map } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <div className={classes.top}>
      <h1 className={classes.title}>Address space</h1>
      <RecordPicker
        resource="vrfs"
        aria-label="VRF"
        value={vrf}
        onChange={(next) => void navigate({ search: next === undefined ? {} : { vrf: next } })}
      />
      {vrf === undefined && <span className={classes.muted}>Global table</span>}
      <Find onFind={onFind} />
      {map !== undefined && (
        <Button
          variant="default"
          onClick={() => void navigate({ search: ({ map: _, ...rest }) => rest })}
        >
          Map of the whole prefix
        </Button>
      )}
      <div className={classes.actions}>
        <Button
          variant="default"
          renderRoot={(props) => (
            <PageLink {...props} to="/inventory/$resource" params={{ resource: 'prefixes' }} />
          )}
        >
          List of prefixes
        </Button>
      </div>
    </div>
  );
}

/** Opens the path to an address or a network. */
function Find({ onFind }: { onFind: (network: string) => void }) {
  const [text, setText] = useState('');
  const [isWrong, setWrong] = useState(false);
  const find = () => {
    const network = networkOf(text.trim());
    setWrong(network === undefined);
    if (network) onFind(formatBlock(network));
  };
  return (
    <form
      className={classes.find}
      onSubmit={(event) => {
        event.preventDefault();
        find();
      }}
    >
      <TextInput
        aria-label="Address or network"
        placeholder="10.1.2.3 or 10.1.0.0/16"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        error={isWrong ? 'This is neither an address nor a network.' : undefined}
      />
      <Button type="submit" variant="default">
        Find
      </Button>
    </form>
  );
}
