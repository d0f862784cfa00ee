import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { SEARCH_ATTRIBUTES, type RunAttributes } from '../contracts.ts';

const key = (name: string) => defineSearchAttributeKey(name, 'KEYWORD');

/** The search attributes of a run. */
export const attributesOf = ({ tenant, jobType, record }: RunAttributes): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: key(SEARCH_ATTRIBUTES.tenant), value: tenant },
    { key: key(SEARCH_ATTRIBUTES.jobType), value: jobType },
    { key: key(SEARCH_ATTRIBUTES.record), value: record },
  ]);
