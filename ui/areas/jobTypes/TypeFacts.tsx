import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { describeRetries } from '../../parts/form/retryPolicy.ts';
import { formatDuration } from '../../parts/format.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { JobTypeWithVersions } from './typeQueries.ts';
import { shortDigest, whoMayRun } from './typeText.ts';

const PER = { type: 'the type', tenant: 'a tenant', target: 'a target' };

/** Who runs a type, who may run it, and its limits. */
export function TypeFacts({ type }: { type: JobTypeWithVersions }) {
  const { origin, pools, runners, digest, acceptedBy, acceptedAt, concurrency } = type;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Origin', value: origin === 'runner' ? 'Runners' : 'Holdfast' },
          pools.length > 0 && { label: 'Pool', value: pools.join(', ') },
          runners !== null && { label: 'Living runners', value: String(runners) },
          { label: 'Who may run it', value: whoMayRun(type) },
          type.permission !== null && {
            label: 'Permission',
            value: <code>{type.permission}</code>,
          },
          { label: 'You may run it', value: type.mayRun ? 'Yes' : 'No' },
          { label: 'Is about', value: type.targets === 'none' ? 'No record' : `A ${type.targets}` },
          { label: 'Time limit', value: formatDuration(type.timeoutMs) },
          { label: 'Retries', value: describeRetries(type.retryPolicy) },
          concurrency !== null && {
            label: 'At a time',
            value: `${concurrency.limit} of ${PER[concurrency.per]}; further ones ${
              concurrency.whenFull === 'wait' ? 'wait' : 'fail'
            }`,
          },
          acceptedAt !== null && {
            label: 'Accepted',
            value: (
              <>
                <Time value={acceptedAt} />
                {acceptedBy !== null && (
                  <>
                    {' '}
                    by <Actor id={acceptedBy} names={type.included} />
                  </>
                )}
              </>
            ),
          },
          acceptedAt !== null &&
            digest !== null && {
              label: 'Accepted version',
              value: <code title={digest}>{shortDigest(digest)}</code>,
            },
        ]}
      />
    </Section>
  );
}
