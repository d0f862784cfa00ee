import { useQuery } from '@tanstack/react-query';
import { useLiveRefresh } from '../../../app/live.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Reading } from '../../../parts/Reading.tsx';
import { USAGE_EVENTS } from '../inventoryQueries.ts';
import { networkOf } from '../space/networks.ts';
import { pathQuery, SPACE_KEY } from '../space/spaceQueries.ts';
import { Neighbours } from './Neighbours.tsx';
import { NetworkChain } from './NetworkChain.tsx';
import { NextFree } from './NextFree.tsx';

type Props = { address: string; vrf: string | undefined };

/** Where an address is: the networks around it, what is beside it, and the next free one. */
export function AddressContext({ address, vrf }: Props) {
  const { data: path, error, refetch } = useQuery(pathQuery(address, vrf));
  useLiveRefresh(USAGE_EVENTS, SPACE_KEY);
  if (error && !path) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (!path) return <Reading height={160} label="Loading the networks" />;
  const innermost = path.at(-1);
  const block = innermost && networkOf(innermost.cidr);
  const prefix = innermost?.id != null && block && { ...innermost, id: innermost.id, block };
  return (
    <>
      <NetworkChain {...{ path, address, vrf }} />
      {prefix && <Neighbours {...{ prefix, address, vrf }} />}
      {prefix && <NextFree prefix={prefix} vrf={vrf} />}
    </>
  );
}
