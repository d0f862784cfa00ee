import type { Knex } from '../../db/core/knex.ts';
import { expect } from '@jest/globals';
import type { Static } from 'typebox';
import type {
  BulkResult,
  ValidationResult,
  ValidationResults,
} from '../../api/inventory/schemas.ts';
import type { ProblemBody, TestClient } from './client.ts';
import type { Page } from './users.ts';

/** A record of any resource. */
export type InventoryRecord = {
  id: string;
  tenantId: string;
  version: number;
  createdAt: string;
  updatedAt: string;
  [field: string]: unknown;
};
export type RecordPage = Page<InventoryRecord>;

/** The validation of one mutation, of several, and the result of writing several. */
export type Validation = Static<typeof ValidationResult>;
export type BatchValidation = Static<typeof ValidationResults>;
export type BulkReport = Static<typeof BulkResult>;

/** The body of a refused write. */
export type WriteProblem = ProblemBody & { conflicts: Finding[] };

/** Returns a function that creates a record and expects success. */
export const recordFactory =
  (client: () => TestClient) =>
  (resource: string, record: object): Promise<InventoryRecord> =>
    client().post<InventoryRecord>(`/api/inventory/${resource}`, record).expect(201);

export type Finding = {
  pointer: string | null;
  code: string;
  message: string;
  resource?: string | null;
  id?: string | null;
};

/** The record, or the problem. */
type WriteBody = InventoryRecord | ProblemBody;

/** Returns a function that validates and writes a mutation, and expects both to agree. */
export const attemptFactory =
  (client: () => TestClient) =>
  async (resource: string, record: Record<string, unknown>, operation = 'create') => {
    const validation = client().post<Validation>('/api/validation/inventory', {
      resource,
      operation,
      record,
    });
    await validation;
    const { id, ...fields } = record;
    const path = `/api/inventory/${resource}`;
    const { status, body } =
      operation === 'create'
        ? await client().post<WriteBody>(path, record)
        : operation === 'update'
          ? await client().put<WriteBody>(`${path}/${String(id)}`, fields)
          : await client().delete<WriteBody>(`${path}/${String(id)}`);
    const validated = await validation.expect(status < 300 ? 200 : status);
    const { errors, conflicts, warnings } = validated.validation;
    const found = [...errors, ...conflicts].map(({ pointer, code }) => `${pointer ?? '-'} ${code}`);
    if (errors.length > 0)
      expect(
        (body as ProblemBody).errors?.map(({ pointer, code }) => `${pointer ?? '-'} ${code}`),
      ).toEqual(errors.map(({ pointer, code }) => `${pointer} ${code}`));
    return {
      status,
      body,
      found,
      errors,
      conflicts,
      warnings: warnings.map(({ code }) => code),
      effects: validated.effects,
      candidate: validated.candidateRecord,
    };
  };

/** The id of one of the prefixes of `insertLargePrefixes`. */
export const largePrefixId = (n: number): string => `pfx_${String(n).padStart(26, '0')}`;

/** Adds prefixes of the platform, 10.0.0.0/24 and those that follow it, with custom fields of `size` characters. */
export const insertLargePrefixes = async (db: Knex, count: number, size: number): Promise<void> =>
  void (await db.raw(
    `INSERT INTO prefixes (id, tenant_id, cidr, status, allocation_mode, custom_fields)
     SELECT 'pfx_' || lpad(n::text, 26, '0'), 'platform', set_masklen('10.0.0.0'::cidr + n * 256, 24),
       'active', 'static', jsonb_build_object('note', repeat('x', ?))
     FROM generate_series(0, ?::int - 1) AS n`,
    [size, count],
  ));
