import { answer, api } from '../../app/api.ts';
import { whereOfTarget } from './jobTarget.ts';
import type { TargetKind } from './target.ts';

/** Where a job about this record would be. */
export const whereQuery = (kind: TargetKind, id: string) => ({
  queryKey: ['jobs', 'where', kind, id],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const options = { params: { path: { id } }, signal };
    return whereOfTarget(
      kind,
      kind === 'site'
        ? await answer(api.GET('/api/inventory/sites/{id}', options))
        : await answer(api.GET('/api/inventory/devices/{id}', options)),
    );
  },
});
