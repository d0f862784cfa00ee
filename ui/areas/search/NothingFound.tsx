import { Empty } from '../../parts/Empty.tsx';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { PageLink } from '../../parts/PageLink.tsx';

const kindsText = (kinds: string): string =>
  kinds
    .split(',')
    .map((kind) => nounOf(kind, 2))
    .join(', ');

/** What was searched, for those who have not found it. */
export function NothingFound({ query, kinds }: { query: string; kinds: string | undefined }) {
  if (kinds !== undefined)
    return (
      <Empty
        kind="filtered"
        title={`No ${kindsText(kinds)} found for “${query}”`}
        detail="Only records that you may read were searched."
        action={
          <PageLink to="/search" search={{ q: query }}>
            Search all kinds
          </PageLink>
        }
      />
    );
  return (
    <Empty
      kind="nothing"
      title={`Nothing found for “${query}”`}
      detail={
        <>
          The search covered the names, descriptions, addresses, serial numbers and ids of the
          inventory, and of schedules, approval requests and users, as far as you may read them.
          Jobs, webhooks and backups are found by their id only. Payloads, logs and results are not
          searched.
        </>
      }
    />
  );
}
