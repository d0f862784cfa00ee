import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../app/live.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { labelOf } from '../../parts/names.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { SecretActions } from './SecretActions.tsx';
import { SecretHistory } from './SecretHistory.tsx';
import { secretQuery, type Secret } from './secretQueries.ts';

const route = getRouteApi('/frame/secrets/$secretId');

const PARENT = { label: 'Secrets', to: '/secrets' };

/** A secret: who may receive it, and what has happened to it. Its value is never shown. */
export function SecretPage() {
  const { secretId } = route.useParams();
  const { data: secret, error, refetch } = useQuery(secretQuery(secretId));
  useTitle(secret && `Secret ${secret.name}`);
  useLiveRefresh(['secret.*'], ['secrets'], ({ subject }) => subject.id === secretId);
  if (!secret)
    return (
      <RecordPage parent={PARENT} title="Secret" id={secretId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={200} label="Loading the secret" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={secret.id}
      title={secret.name}
      note={secret.description === '' ? undefined : secret.description}
      actions={<SecretActions key={secret.id} secret={secret} />}
      aside={<Facts secret={secret} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <SecretHistory secretId={secret.id} />
    </RecordPage>
  );
}

type Named = Secret & { included?: Parameters<typeof labelOf>[0] };

function Facts({ secret }: { secret: Named }) {
  const { included: names, tenantId, pools } = secret;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          {
            label: 'Pools that may receive it',
            value: pools.length === 0 ? 'None: no job gets it' : pools.join(', '),
          },
          { label: 'Value', value: 'Not shown' },
          { label: 'Value set', value: <Time value={secret.valueSetAt} /> },
          {
            label: 'Tenant',
            value:
              tenantId === 'platform'
                ? 'platform: for jobs of all tenants'
                : (labelOf(names, tenantId, 'tenants') ?? tenantId),
          },
          { label: 'Created', value: <Time value={secret.createdAt} /> },
          { label: 'Created by', value: <Actor id={secret.createdBy} names={names} /> },
          { label: 'Changed', value: <Time value={secret.updatedAt} /> },
        ]}
      />
    </Section>
  );
}
