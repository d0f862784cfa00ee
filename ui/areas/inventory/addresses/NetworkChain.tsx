import { PageLink } from '../../../parts/PageLink.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import links from '../Inventory.module.css';
import type { SpacePrefix } from '../space/spaceQueries.ts';
import { UsageBar } from '../Usage.tsx';
import classes from './Addresses.module.css';

type Props = { path: readonly SpacePrefix[]; address: string; vrf: string | undefined };

/** The networks that contain an address, the outermost first. */
export function NetworkChain({ path, address, vrf }: Props) {
  const search = { at: address, ...(vrf !== undefined && { vrf }) };
  return (
    <Section
      title="Networks around it"
      actions={
        <PageLink className={links.link} to="/inventory/prefixes/space" search={search}>
          On the map
        </PageLink>
      }
    >
      {path.length === 0 ? (
        <p className={classes.hint}>No prefix that you may read contains it.</p>
      ) : (
        <ol className={classes.chain}>
          {path.map(({ id, cidr, status, usage }, depth) => (
            <li key={cidr} data-depth={Math.min(depth, MAX_DEPTH)}>
              <span className={classes.network}>
                <RecordLink id={id} label={cidr} />
              </span>
              {status !== null && <StatusBadge status={status} plain />}
              <span className={classes.usage}>{usage && <UsageBar usage={usage} />}</span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

/** Deeper ones are not moved further to the right: a phone has no space for that. */
const MAX_DEPTH = 6;
