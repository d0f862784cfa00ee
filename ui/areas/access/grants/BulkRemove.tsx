import { problemFields } from '../../../parts/problems.ts';
import { formatNumberOf } from '../../../parts/format.ts';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { removeGrant } from './grantQueries.ts';

type Props = { ids: ReadonlySet<string>; noun: string; done: () => void };

/** Removes the selected grants, one after the other: each is refused or removed by itself. */
export function BulkRemove({ ids, noun, done }: Props) {
  const count = formatNumberOf(ids.size, noun);
  return (
    <ConfirmedChange
      permission="rbac:write"
      // The service decides for each of them.
      where={{ complete: false }}
      icon="trash"
      label="Remove"
      title={`Remove ${count}?`}
      confirm={`Remove ${count}`}
      danger
      run={async () => {
        for (const id of ids)
          await removeGrant({ id }).catch((error: unknown) => {
            // Others have removed it.
            if (problemFields(error).status !== 404) throw error;
          });
      }}
      onDone={done}
    >
      What the roles allow ends immediately, in open sessions too. If one of them cannot be removed,
      those before it are removed and the others stay.
    </ConfirmedChange>
  );
}
