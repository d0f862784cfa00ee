import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { answer, api, type Schemas } from '../../app/api.ts';
import { useIdempotencyKeys } from '../../app/idempotency.ts';
import { serverNow } from '../../parts/clock.ts';
import { PLATFORM, TENANT_HEADER } from '../../app/session/tenant.ts';

/** Instead of the id of an account. */
export const NEW_ACCOUNT = 'new';

export type TokenDraft = {
  /** The id of a service account, or `NEW_ACCOUNT`. */
  account: string | null;
  accountName: string;
  name: string;
  /** How long the token is valid. */
  days: string;
  networks: string[];
};

/** The requests that make a token, and before it, if asked, the service account. */
function useRequests(pool: string) {
  const accountKeys = useIdempotencyKeys();
  const tokenKeys = useIdempotencyKeys();
  // An account that exists when its token is refused is used by the next try.
  const account = useRef<{ name: string; id: string }>(undefined);
  const expiry = useRef<{ draft: TokenDraft; expiresAt: string }>(undefined);

  async function accountOf({ account: chosen, accountName }: TokenDraft): Promise<string> {
    if (chosen !== null && chosen !== NEW_ACCOUNT) return chosen;
    const name = accountName.trim();
    if (account.current?.name === name) return account.current.id;
    const body = {
      name,
      displayName: `Runners of the pool ${pool}`,
      tenantId: PLATFORM.tenantId,
    };
    const headers = { [TENANT_HEADER]: PLATFORM.tenantId };
    const { id } = await accountKeys.once(body, (header) =>
      answer(api.POST('/api/service-accounts', { params: { header }, headers, body })),
    );
    account.current = { name, id };
    return id;
  }

  return async (draft: TokenDraft): Promise<Schemas['TokenWithSecret']> => {
    const id = await accountOf(draft);
    // The same request again, after an answer that was lost: its expiry was computed then.
    if (expiry.current?.draft !== draft) {
      const at = new Date(serverNow() + Number(draft.days) * DAY_MS);
      expiry.current = { draft, expiresAt: at.toISOString() };
    }
    const body = {
      name: draft.name.trim(),
      pools: [pool],
      expiresAt: expiry.current.expiresAt,
      ...(draft.networks.length > 0 && { allowedNetworks: draft.networks }),
    };
    return tokenKeys.once(body, (header) => {
      const params = { path: { id }, header };
      return answer(api.POST('/api/service-accounts/{id}/tokens', { params, body }));
    });
  };
}

/**
 * Makes a token of runners for a pool, and before it, if asked, the service account. Its text is in `made`
 * only, and is forgotten with the dialog: the cache of the query client never has it.
 */
export function useRunnerToken(pool: string) {
  const client = useQueryClient();
  const make = useRequests(pool);
  const isBusy = useRef(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const [made, setMade] = useState<Schemas['TokenWithSecret']>();
  return {
    made,
    busy,
    problem,
    create(draft: TokenDraft): void {
      if (isBusy.current) return;
      isBusy.current = true;
      setBusy(true);
      setProblem(undefined);
      make(draft)
        .then(setMade, setProblem)
        .finally(() => {
          isBusy.current = false;
          setBusy(false);
          void client.invalidateQueries({ queryKey: ['runners', 'accounts'] });
        });
    },
  };
}
