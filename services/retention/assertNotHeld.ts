import type { Knex } from '../../db/core/knex.ts';
import { findHold, findHoldOnBackups, type HoldRef } from '../../db/retention/holds.ts';
import type { HeldSubject } from '../../domain/retention/holds.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { legalHoldError } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';

type Holder = { access: Pick<Access, 'holds'>; caller: Caller };

function refuse({ access, caller }: Holder, hold: HoldRef | undefined): void {
  if (!hold) return;
  throw legalHoldError(access.holds(caller.rights, 'hold:read', hold) ? hold : undefined);
}

/**
 * Checks that no legal hold keeps a record that the caller deletes. Triggers of the schema check it
 * again. Error: `legal_hold`, with the hold if the caller may read it.
 */
export const assertNotHeld = async (
  holder: Holder,
  trx: Knex,
  tenantId: string,
  subject: HeldSubject,
): Promise<void> => refuse(holder, await findHold(trx, tenantId, subject));

/** The same for a backup of a tenant, whose archive contains what is held. */
export const assertBackupNotHeld = async (
  holder: Holder,
  trx: Knex,
  tenantId: string,
): Promise<void> => refuse(holder, await findHoldOnBackups(trx, tenantId));
