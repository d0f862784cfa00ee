import { useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { contentsQuery } from '../addresses/addressQueries.ts';
import { createMapModel, createMarks, type MapModel, type MappedContents } from './mapModel.ts';
import { networkOf } from './networks.ts';
import { mapQuery, type SpacePrefix } from './spaceQueries.ts';

/** The map of a prefix; of the parts that are shown, if it is too large to be read as a whole. */
export function useMapModel(root: SpacePrefix | undefined, shown: readonly string[]) {
  const id = root?.id ?? '';
  const whole = useQuery({ ...mapQuery(id), enabled: id !== '' });
  const isPartial = whole.data?.complete === false;
  const parts = useQueries({
    queries: isPartial
      ? shown.filter((network) => network !== root?.cidr).map((network) => mapQuery(id, network))
      : [],
    combine: (results) => results.map(({ data }) => data?.prefixes),
  });
  const found = whole.data?.prefixes;
  const cidr = root?.cidr;
  const status = root?.status ?? null;
  const partial = parts.some((part) => part !== undefined) ? parts : undefined;
  const model = useMemo(() => {
    const network = cidr === undefined ? undefined : networkOf(cidr);
    if (found === undefined || cidr === undefined || !network) return undefined;
    const more = partial?.flatMap((part) => part ?? []) ?? [];
    return createMapModel({ cidr, id, status }, network, [...found, ...more]);
  }, [found, partial, cidr, id, status]);
  const { marks, isDense } = useMarks(root, model, shown);
  return {
    model,
    marks,
    isPartial,
    isDense,
    error: whole.error,
    retry: () => void whole.refetch(),
  };
}

/** The addresses and ranges of a map, which has its prefixes first; of what is shown, if they are too many. */
function useMarks(
  root: SpacePrefix | undefined,
  model: MapModel | undefined,
  shown: readonly string[],
) {
  const id = root?.id ?? '';
  const whole = useQuery({ ...contentsQuery(id), enabled: id !== '' && model !== undefined });
  const isDense = whole.data?.complete === false;
  const parts = useQueries({
    queries: isDense
      ? shown
          .filter((network) => network !== root?.cidr)
          .map((network) => contentsQuery(id, network))
      : [],
    combine: (results) => results.flatMap(({ data }) => data ?? []),
  });
  const contents = whole.data;
  const marks = useMemo(() => {
    const all: MappedContents = {
      addresses: [contents, ...parts].flatMap((part) => part?.addresses ?? []),
      ranges: [contents, ...parts].flatMap((part) => part?.ranges ?? []),
    };
    return model && createMarks(model, all);
  }, [model, contents, parts]);
  return { marks, isDense };
}
