import { workflowInfo } from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { RunAttributes } from '../../../domain/dispatch/tasks.ts';
import { SEARCH_ATTRIBUTES } from '../../../domain/dispatch/workflowIds.ts';

/** Tenant and job type of the current workflow run, for its child workflows. */
export function inheritedAttributes(): Omit<RunAttributes, 'record'> {
  const { typedSearchAttributes } = workflowInfo();
  const valueOf = (name: string) =>
    typedSearchAttributes.get(defineSearchAttributeKey(name, 'KEYWORD')) ?? 'none';
  return {
    tenant: valueOf(SEARCH_ATTRIBUTES.tenant),
    jobType: valueOf(SEARCH_ATTRIBUTES.jobType),
  };
}
