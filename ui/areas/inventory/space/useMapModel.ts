import { useQueries, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useMemo } from 'react';
import { contains, type Block } from '../../../../domain/inventory/cidr.ts';
import { contentsQuery } from '../addresses/addressQueries.ts';
import { rectOf } from './mapLayout.ts';
import { createMapModel, createMarks } from './mapModel.ts';
import { networkOf } from './networks.ts';
import { mapQuery, type SpacePrefix } from './spaceQueries.ts';

/** What is read of a network; `complete`: nothing is missing. */
type Answer = { network: string; complete: boolean };

const stateOf = <Part extends Answer>({
  data,
  error,
  isPending,
  refetch,
}: UseQueryResult<Part>) => ({
  ...{ data, error, isPending, refetch },
});

const statesOf = <Part extends Answer>(results: UseQueryResult<Part>[]) => results.map(stateOf);

type State = ReturnType<typeof stateOf<Answer>>;

/** The networks of which everything is known. */
const completeOf = (parts: readonly (Answer | undefined)[]): Block[] =>
  parts.flatMap((part) => (part?.complete ? (networkOf(part.network) ?? []) : []));

/** Networks without those of another map and the whole of this one. */
function partsOf(root: SpacePrefix | undefined, networks: readonly string[]): string[] {
  const whole = root && networkOf(root.cidr);
  return networks.filter((cidr) => {
    const network = networkOf(cidr);
    return whole && network && network.length > whole.length && contains(whole, network);
  });
}

/** What to read of a large map: what is shown, and what is chosen outside of it. */
function wantedOf(zoomed: readonly string[], chosen: readonly string[]): readonly string[] {
  const isShown = (cidr: string): boolean => {
    const network = networkOf(cidr);
    return zoomed.some((each) => {
      const part = networkOf(each);
      return part && network && contains(part, network);
    });
  };
  return [...zoomed, ...chosen.filter((cidr) => !isShown(cidr))];
}

/**
 * The map of a prefix, also of the parts that are shown if it is too large to be read as a whole, and what could not
 * be read of it. `unread` has the areas that are shown and not known.
 */
export function useMapModel(
  root: SpacePrefix | undefined,
  shown: readonly string[],
  chosen: string | undefined,
) {
  const zoomed = partsOf(root, shown);
  const wanted = wantedOf(zoomed, partsOf(root, chosen === undefined ? [] : [chosen]));
  const prefixes = usePrefixes(root, wanted);
  const { model } = prefixes;
  const contents = useMarks(root, model, wanted);
  const { marks } = contents;
  const networks = zoomed.length > 0 ? zoomed.join(' ') : root?.cidr;
  const unread = useMemo(() => {
    if (!model || !marks || networks === undefined) return [];
    return networks.split(' ').flatMap((cidr) => {
      const network = networkOf(cidr);
      const isKnown = !network || (model.isRead(network) && marks.isRead(network));
      return isKnown ? [] : [rectOf(model.whole, network)];
    });
  }, [model, marks, networks]);
  const states = [...prefixes.states, ...(model ? contents.states : [])];
  const failed = states.filter(({ error }) => error !== null);
  return {
    ...{ model, marks, unread },
    isPartial: prefixes.isPartial,
    isDense: contents.isDense,
    isReading: states.some(({ isPending }) => isPending),
    error: failed[0]?.error ?? null,
    /** Reads again what has failed. */
    retry: () => failed.forEach(({ refetch }) => void refetch()),
  };
}

function usePrefixes(root: SpacePrefix | undefined, wanted: readonly string[]) {
  const id = root?.id ?? '';
  const whole = useQuery({ ...mapQuery(id), enabled: id !== '' });
  const isPartial = whole.data?.complete === false;
  const parts = useQueries({
    queries: isPartial ? wanted.map((network) => mapQuery(id, network)) : [],
    combine: statesOf,
  });
  const found = whole.data;
  const cidr = root?.cidr;
  const status = root?.status ?? null;
  const model = useMemo(() => {
    const network = cidr === undefined ? undefined : networkOf(cidr);
    if (found === undefined || cidr === undefined || !network) return undefined;
    const read = [found, ...parts.map(({ data }) => data)];
    const all = read.flatMap((part) => part?.prefixes ?? []);
    return createMapModel({ cidr, id, status }, network, all, completeOf(read));
  }, [found, parts, cidr, id, status]);
  const states: State[] = id === '' ? [] : [stateOf(whole), ...parts];
  return { model, isPartial, states };
}

/** The addresses and ranges of a map, which has its prefixes first; of parts of it, if they are too many. */
function useMarks(
  root: SpacePrefix | undefined,
  model: ReturnType<typeof usePrefixes>['model'],
  wanted: readonly string[],
) {
  const id = root?.id ?? '';
  const whole = useQuery({ ...contentsQuery(id), enabled: id !== '' && model !== undefined });
  const isDense = whole.data?.complete === false;
  const parts = useQueries({
    queries: isDense ? wanted.map((network) => contentsQuery(id, network)) : [],
    combine: statesOf,
  });
  const found = whole.data;
  const marks = useMemo(() => {
    const read = [found, ...parts.map(({ data }) => data)];
    const all = {
      addresses: read.flatMap((part) => part?.addresses ?? []),
      ranges: read.flatMap((part) => part?.ranges ?? []),
    };
    return model && createMarks(model, all, completeOf(read));
  }, [model, found, parts]);
  const states: State[] = [stateOf(whole), ...parts];
  return { marks, isDense, states };
}
