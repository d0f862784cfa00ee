import { Code, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Navigate } from '@tanstack/react-router';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { headingOf, nounOf } from '../../../domain/shared/nouns.ts';
import { ownValue } from '../../parts/ownValue.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { isRecordId } from '../../parts/recordIds.ts';
import { answer, api } from '../api.ts';
import { useTitle } from '../useTitle.ts';
import { OpenView } from '../views/OpenView.tsx';

const route = getRouteApi('/frame/id/$id');

/** Kinds that the console has no page for, by the letters of their ids, and where the API has them. */
const WITHOUT_PAGE: Readonly<Record<string, { kind: string; path: (id: string) => string }>> = {
  hld: { kind: 'legal-holds', path: (id) => `/api/legal-holds/${id}` },
  aar: { kind: 'audit-archives', path: () => '/api/audit/archives' },
  ses: { kind: 'sessions', path: () => '/api/users/{id}/sessions' },
};

/** Where an id leads that has no page of its own. */
export function RecordPage() {
  const { id } = route.useParams();
  const letters = isRecordId(id) ? id.slice(0, 3) : '';
  const withoutPage = ownValue(WITHOUT_PAGE, letters);
  if (withoutPage) return <WithoutPage id={id} {...withoutPage} />;
  switch (letters) {
    case 'viw':
      return <OpenView id={id} />;
    case 'run':
      return <OpenRun id={id} />;
    case 'req':
      return <Navigate to="/audit" search={{ requestId: id }} replace />;
    default:
      return <FoundRecord id={id} />;
  }
}

type WithoutPageProps = { id: string; kind: string; path: (id: string) => string };

/** How to read what the console has no page for. */
function WithoutPage({ id, kind, path }: WithoutPageProps) {
  useTitle(id);
  return (
    <Stack gap="xs" p="md" align="stretch">
      <Title order={1}>{headingOf(kind, 1)}</Title>
      <Text size="sm" c="dimmed">
        {id}, in the API <Code>{path(id)}</Code>{' '}
        <CopyButton value={path(id)} label="Copy the path" />
      </Text>
      <Text size="sm">
        The console has no page for {nounOf(kind, 2)}.{' '}
        <PageLink to="/audit" search={{ subjectId: id }}>
          What the audit log has about it
        </PageLink>
      </Text>
    </Stack>
  );
}

/** Opens the schedule of a run: its page lists its runs. */
function OpenRun({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['schedules', 'run', id],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/schedules/logs/{id}', { params: { path: { id } }, signal })),
    retry: false,
  });
  if (data)
    return (
      <Navigate
        to="/schedules/$scheduleId"
        params={{ scheduleId: data.scheduleId }}
        search={{}}
        replace
      />
    );
  return error ? (
    <ProblemNote problem={error} retry={() => void refetch()} />
  ) : (
    <Reading height={120} label="Loading the run" />
  );
}

/** Opens the inventory record with an id of a kind that this console does not know. */
function FoundRecord({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['search', 'id', id],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/search', { params: { query: { q: id, limit: 1 } }, signal })),
  });
  const record = data?.items.find((item) => item.id === id);
  useTitle(record?.label ?? id);
  if (data === undefined)
    return error && <ProblemNote problem={error} retry={() => void refetch()} />;
  if (record === undefined)
    return (
      <Empty
        isPage
        kind="hidden"
        title="No record with this id"
        detail={`There is no ${id}, or you may not read it.`}
      />
    );
  return (
    <Navigate
      to="/inventory/$resource/$recordId"
      params={{ resource: record.kind, recordId: id }}
      replace
    />
  );
}
