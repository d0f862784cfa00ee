import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../../app/live.ts';
import { consoleSettings } from '../../../app/settings.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { CopyButton } from '../../../parts/CopyButton.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { formatNumberOf, labelOfField } from '../../../parts/format.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { RBAC_READERS } from '../accessViews.ts';
import { AuditSection } from '../AuditSection.tsx';
import { mappingsQuery } from '../grants/grantQueries.ts';
import { GrantTable } from '../grants/GrantTable.tsx';
import { NewButton } from '../NewButton.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { ConfigValue } from './ConfigValue.tsx';
import { ProviderActions } from './ProviderActions.tsx';
import { PROVIDER_KINDS } from './providerFilters.ts';
import { kindsQuery, providerQuery, PROVIDERS_KEY, type Provider } from './providerQueries.ts';
import { ProviderTest } from './ProviderTest.tsx';
import { registration } from './providerText.ts';
import classes from '../Access.module.css';

const route = getRouteApi('/frame/access/providers/$providerId');

const PARENT = { label: 'Identity providers', to: '/access/providers' };

/** An identity provider: its settings, a test of them, and the roles of its groups. */
export function ProviderPage() {
  const { providerId } = route.useParams();
  const { data: provider, error, refetch } = useQuery(providerQuery(providerId));
  useTitle(provider && `Identity provider ${provider.name}`);
  useLiveRefresh(['auth.provider.*'], PROVIDERS_KEY);
  useLiveRefresh(['rbac.mapping.*'], ['access', 'grants']);
  if (!provider)
    return (
      <UnreadRecord
        parent={PARENT}
        title="Identity provider"
        id={providerId}
        error={error}
        retry={refetch}
      />
    );
  const isLocal = provider.kind === 'local';
  return (
    <RecordPage
      parent={PARENT}
      id={provider.id}
      title={provider.name}
      badge={<StatusBadge status={provider.enabled ? 'enabled' : 'disabled'} />}
      note={PROVIDER_KINDS[provider.kind] ?? provider.kind}
      actions={<ProviderActions key={provider.id} provider={provider} />}
      aside={<Facts provider={provider} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <ProviderTest key={provider.id} provider={provider} />
      {!isLocal && <Mappings providerId={provider.id} />}
      {!isLocal && <Settings provider={provider} />}
      <AuditSection title="History" by="subjectId" id={provider.id} />
    </RecordPage>
  );
}

function Mappings({ providerId }: { providerId: string }) {
  const { canAnywhere } = usePermissions();
  const isReader = RBAC_READERS.some(canAnywhere);
  const { data, error, refetch } = useQuery({
    ...mappingsQuery({ providerId: [providerId] }),
    enabled: isReader,
  });
  if (!isReader) return null;
  return (
    <Section
      title="Group mappings"
      note={data && formatNumberOf(data.items.length, 'mapping')}
      actions={
        <NewButton
          to="/access/mappings/new"
          permission="rbac:write"
          variant="default"
          search={{ providerId }}
        >
          Map a group
        </NewButton>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data?.items.length === 0 && (
        <p className={classes.muted}>
          No group is mapped that you may see. Users can sign in, and may do nothing until they get
          a role.
        </p>
      )}
      {data && data.items.length > 0 && <GrantTable label="Group mappings: grants" grants={data} />}
    </Section>
  );
}

function Settings({ provider: { kind, config } }: { provider: Provider }) {
  const { data } = useQuery(kindsQuery);
  const known = data?.find((each) => each.kind === kind);
  const secrets = known?.secrets.map(({ name }) => name);
  return (
    <Section title="Settings">
      <DescriptionList
        items={Object.entries(config).map(([name, value]) => ({
          label: labelOfField(name),
          value: <ConfigValue value={value} isSecret={secrets?.includes(name) ?? false} />,
        }))}
      />
    </Section>
  );
}

function Facts({ provider }: { provider: Provider }) {
  const { data: settings } = useQuery(consoleSettings);
  const { canAnywhere } = usePermissions();
  const urls = registration(provider, settings?.origin ?? location.origin);
  return (
    <>
      <Section title="Details">
        <DescriptionList
          items={[
            { label: 'Created', value: <Time value={provider.createdAt} /> },
            { label: 'Changed', value: <Time value={provider.updatedAt} /> },
            canAnywhere('user:read') && {
              label: 'Users',
              value: (
                <PageLink to="/access/users" search={{ providerId: provider.id }}>
                  Those who have signed in with it
                </PageLink>
              ),
            },
          ]}
        />
      </Section>
      {urls.length > 0 && (
        <Section title="To register at the provider">
          <DescriptionList
            items={urls.map(({ label, value }) => ({
              label,
              value: (
                <>
                  <code>{value}</code> <CopyButton value={value} label={`Copy ${label}`} />
                </>
              ),
            }))}
          />
        </Section>
      )}
    </>
  );
}
