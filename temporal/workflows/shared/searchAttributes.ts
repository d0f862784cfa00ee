import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import type { RunAttributes } from '../../../domain/dispatch/tasks.ts';
import { SEARCH_ATTRIBUTES } from '../../../domain/dispatch/workflowIds.ts';

const keywordKey = (name: string) => defineSearchAttributeKey(name, 'KEYWORD');

/** The search attributes of a workflow run. */
export const toSearchAttributes = ({
  tenant,
  jobType,
  record,
}: RunAttributes): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: keywordKey(SEARCH_ATTRIBUTES.tenant), value: tenant },
    { key: keywordKey(SEARCH_ATTRIBUTES.jobType), value: jobType },
    { key: keywordKey(SEARCH_ATTRIBUTES.record), value: record },
  ]);
