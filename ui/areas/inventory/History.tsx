import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { PageLink } from '../../parts/PageLink.tsx';
import { Actor } from '../../parts/Actor.tsx';
import { FieldDiff } from '../../parts/diff/FieldDiff.tsx';
import { rowsOf } from '../../parts/plan/effects.ts';
import { mergeNames, type Names } from '../../parts/names.ts';
import { ownValue } from '../../parts/ownValue.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import classes from './Inventory.module.css';
import { readChanges, recordKey, type RecordChange, type Resource } from './inventoryQueries.ts';
import { referenceOf } from './resources.ts';

type Props = { resource: Resource; id: string };

type Page = Awaited<ReturnType<typeof readChanges>>;

const PAGE_SIZE = 20;
const FIRST_PAGE: string | null = null;

const VERBS = { create: 'created it', update: 'changed it', delete: 'deleted it' } as const;

/** The page with the oldest changes: they may not be all. */
function ArchivedNote({ page }: { page: Page | undefined }) {
  if (page?.nextCursor !== null || page.archivedUntil === null) return null;
  const oldest = page.items.at(-1);
  if (oldest?.action === 'create' && !oldest.restored) return null;
  return (
    <p className={classes.muted}>
      Changes until <Time value={page.archivedUntil} format="full" /> may be in an archive of the
      audit log.
    </p>
  );
}

/** Who has changed what and when, the newest first. */
export function History({ resource, id }: Props) {
  const changes = useInfiniteQuery({
    queryKey: [...recordKey(resource.name, id), 'changes'],
    queryFn: ({ signal, pageParam }) =>
      readChanges(
        resource.name,
        id,
        { limit: PAGE_SIZE, ...(pageParam !== null && { cursor: pageParam }) },
        signal,
      ),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const pages = changes.data?.pages ?? [];
  const names = mergeNames(pages.map(({ included }) => included));
  const { error } = changes;
  return (
    <Section title="History">
      {error && <ProblemNote problem={error} retry={() => void changes.refetch()} />}
      <ol className={classes.history}>
        {pages
          .flatMap(({ items }) => items)
          .map((change) => (
            <Entry
              key={change.id}
              resource={resource}
              recordId={id}
              change={change}
              names={names}
            />
          ))}
      </ol>
      <ArchivedNote page={pages.at(-1)} />
      {changes.hasNextPage && (
        <Button
          variant="default"
          loading={changes.isFetchingNextPage}
          onClick={() => void changes.fetchNextPage()}
        >
          Older changes
        </Button>
      )}
    </Section>
  );
}

/** The request of what a job does: its page has what it was created by, such as an approved request. */
const JOB_REQUEST = /^job:(job_[0-9a-z]{26})/;

type EntryProps = { resource: Resource; recordId: string; change: RecordChange; names: Names };

function Entry({ resource, recordId, change, names }: EntryProps) {
  const { at, action, restored, actorId, requestId, changes, version } = change;
  const jobId = JOB_REQUEST.exec(requestId)?.[1];
  const kinds = new Map(resource.fields.map((field) => [field.name, referenceOf(field)]));
  return (
    <li className={classes.change}>
      <div className={classes.changeHead}>
        <span>
          <Actor id={actorId} names={names} full />{' '}
          {restored && action !== 'delete' ? 'restored it' : (ownValue(VERBS, action) ?? action)}
          {jobId !== undefined && (
            <>
              {' '}
              <RecordLink id={jobId} label={restored ? 'by a restore' : 'by a job'} />
            </>
          )}
        </span>
        <Time value={at} format="full" />
        <span className={classes.muted}>version {version}</span>
        {action !== 'delete' && (
          <PageLink
            className={classes.link}
            to="/inventory/$resource/$recordId"
            params={{ resource: resource.name, recordId }}
            search={{ at }}
          >
            Show as it was then
          </PageLink>
        )}
      </div>
      <FieldDiff
        quiet
        resource={resource.name}
        action={action}
        label={`Change of ${at}`}
        names={names}
        rows={rowsOf({ action, changes }).map((row) => ({ ...row, kind: kinds.get(row.field) }))}
      />
    </li>
  );
}
