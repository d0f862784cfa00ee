import { useQuery } from '@tanstack/react-query';
import { formatBlock, parseHost, type Block } from '../../../../domain/inventory/cidr.ts';
import { labelOfField } from '../../../parts/format.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Section } from '../../../parts/Section.tsx';
import { mapQuery } from '../space/spaceQueries.ts';
import { contentsQuery } from './addressQueries.ts';
import { endOf, neighbourhoodOf, neighboursIn, type Neighbour } from './neighbours.ts';
import classes from './Addresses.module.css';

type Props = {
  /** The innermost prefix around the address. */
  prefix: { id: string; block: Block };
  address: string;
  vrf: string | undefined;
};

/** The addresses before and after one in its prefix: used and free ones. */
export function Neighbours({ prefix: { id, block }, address, vrf }: Props) {
  const part = neighbourhoodOf(block, parseHost(address)?.value ?? block.first);
  const within = formatBlock(part);
  const contents = useQuery(contentsQuery(id, within));
  const map = useQuery(mapQuery(id, within));
  const error = contents.error ?? map.error;
  const retry = () => void Promise.all([contents.refetch(), map.refetch()]);
  return (
    <Section title="Beside it" note={within}>
      {error && <ProblemNote problem={error} retry={retry} />}
      {contents.data && map.data && (
        <ul className={classes.neighbours}>
          {neighboursIn(block, part, contents.data, map.data.prefixes).map((each) => (
            <Cell
              key={each.address}
              neighbour={each}
              vrf={vrf}
              isCurrent={each.address === address}
            />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** What takes an address, in a word. */
function takenText(neighbour: Neighbour): string {
  if (neighbour.kind !== 'address')
    return neighbour.kind === 'prefix' ? neighbour.cidr : neighbour.kind;
  const { id, name, status } = neighbour;
  if (id === null) return 'not readable';
  return name === '' ? labelOfField(status ?? 'used').toLowerCase() : name;
}

type CellProps = { neighbour: Neighbour; vrf: string | undefined; isCurrent: boolean };

function Cell({ neighbour, vrf, isCurrent }: CellProps) {
  const { address, kind } = neighbour;
  const text = takenText(neighbour);
  const id = kind === 'address' || kind === 'range' ? neighbour.id : null;
  const content = (
    <>
      <span className={classes.end}>{endOf(address)}</span>
      <span className={classes.taken}>{text}</span>
    </>
  );
  const shared = {
    className: classes.cell,
    title: `${address}: ${text}`,
    'data-kind': kind,
    'data-current': isCurrent || undefined,
  };
  return (
    <li>
      {id !== null && kind === 'address' ? (
        <PageLink {...shared} to={recordPath(id)} current={isCurrent}>
          {content}
        </PageLink>
      ) : (
        <PageLink
          {...shared}
          to="/inventory/ip-addresses/at"
          search={{ address, ...(vrf !== undefined && { vrf }) }}
          current={isCurrent}
        >
          {content}
        </PageLink>
      )}
    </li>
  );
}
