import { NumberInput, TagsInput, Textarea } from '@mantine/core';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../parts/problems.ts';
import type { Pool } from './runnerQueries.ts';
import { typedNumber } from '../../parts/form/typedNumber.ts';

/** What can be changed of a pool. A number that is being typed may be empty. */
export type PoolDraft = {
  description: string;
  acceptTypes: string[];
  tenantSharePercent: number | '';
};

export const EMPTY_POOL: PoolDraft = {
  description: '',
  acceptTypes: [],
  tenantSharePercent: '',
};

export const POOL_FIELDS = ['/description', '/acceptTypes', '/tenantSharePercent'];

export const draftOf = ({ description, acceptTypes, tenantSharePercent }: Pool): PoolDraft => ({
  description,
  acceptTypes,
  tenantSharePercent: tenantSharePercent ?? '',
});

/** The body of a request. An empty share is that of the installation. */
export const requestOf = ({ tenantSharePercent, ...draft }: PoolDraft) => ({
  ...draft,
  tenantSharePercent: tenantSharePercent === '' ? null : tenantSharePercent,
});

type Props = {
  draft: PoolDraft;
  onChange: (change: Partial<PoolDraft>) => void;
  errors: readonly FieldError[];
};

/** What a pool is for, and what its runners may bring without being asked. */
export function PoolFields({ draft, onChange, errors }: Props) {
  const wrongType = errors.find(({ pointer }) => pointer.startsWith('/acceptTypes'));
  return (
    <>
      <Textarea
        label="Description"
        value={draft.description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={errorAt(errors, '/description')}
        maxLength={1_000}
        autosize
        minRows={1}
        maxRows={6}
      />
      <TagsInput
        label="Job types that need no acceptance"
        description="Names, areas such as net.*, or * for all: their code runs as soon as a runner of the pool announces it"
        placeholder={draft.acceptTypes.length === 0 ? 'None: each type waits to be accepted' : ''}
        size="xs"
        splitChars={[',', ' ', ';']}
        acceptValueOnBlur
        value={draft.acceptTypes}
        onChange={(acceptTypes) => onChange({ acceptTypes })}
        error={wrongType?.detail}
      />
      <NumberInput
        label="Share of one tenant"
        description="The part of the free slots that one tenant can take. Empty: the setting of the installation"
        suffix=" %"
        min={1}
        max={100}
        allowDecimal={false}
        clampBehavior="none"
        value={draft.tenantSharePercent}
        onChange={(value) => onChange({ tenantSharePercent: typedNumber(value) })}
        error={errorAt(errors, '/tenantSharePercent')}
      />
    </>
  );
}
