import { Type } from 'typebox';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { Access } from '../../services/access/access.ts';
import type { RunnerTypes, RunnerTypeView } from '../../services/runners/types.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { jobOfferCheck } from '../../domain/jobs/jobRights.ts';
import { MAX_JOB_TYPE_NAME } from '../../domain/jobs/jobTypeNames.ts';
import { isEmpty } from '../../domain/access/scope.ts';
import { closed } from '../http/schemas.ts';
import { expectedVersion } from '../http/etag.ts';
import { listSchema } from '../http/pagination.ts';
import { noContent, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { AcceptRequest } from '../runners/schemas.ts';
import { typeView } from './typePresenter.ts';
import { JobTypeRecord, JobTypeWithVersions } from './typeSchemas.ts';

const tag = 'Job types';

const OneType = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: MAX_JOB_TYPE_NAME }) },
  closed,
);

type Deps = { jobTypes: JobTypes; runnerTypes: RunnerTypes; access: Access };

/** Routes of the job types: those of Holdfast itself, and those of runners. */
export function typeRoutes({ jobTypes, runnerTypes, access }: Deps): Route[] {
  const ownTypes = () => jobTypes.all().filter(({ lane }) => lane !== 'remote');

  const runnerTypeResponse = (caller: Caller, found: RunnerTypeView): HttpResponse =>
    ok({ ...typeView(found.type, mayCreate(caller), found), versions: versionsView(found) });

  const mayCreate = (caller: Caller) => jobOfferCheck(caller.rights, caller.tenantId);

  const mayReadVersions = (caller: Caller): boolean =>
    !isEmpty(access.scope(caller, 'jobtype:read', 'jobtype:write'));

  return [
    route({
      method: 'GET',
      path: '/api/job-types',
      tag,
      permission: 'job:read',
      operationId: 'listJobTypes',
      summary: 'List the job types with their payload schemas',
      responses: { 200: listSchema(JobTypeRecord, 'JobTypeList') },
      handle: async ({ caller }) => {
        const check = mayCreate(caller);
        const own = ownTypes().map((type) => typeView(type, check));
        const ofRunners = (await runnerTypes.list()).map((found) =>
          typeView(found.type, check, found),
        );
        return ok({ items: [...own, ...ofRunners], nextCursor: null });
      },
    }),
    route({
      method: 'GET',
      path: '/api/job-types/{name}',
      tag,
      permission: ['job:read', 'jobtype:read', 'jobtype:write'],
      operationId: 'getJobType',
      summary: 'Get a job type',
      description: 'With `jobtype:read`, the versions that runners have announced are included.',
      params: OneType,
      responses: { 200: JobTypeWithVersions },
      handle: async ({ caller, params: { name } }) => {
        const own = ownTypes().find((type) => type.name === name);
        if (own) return ok({ ...typeView(own, mayCreate(caller)), versions: [] });
        return runnerTypeResponse(
          caller,
          await runnerTypes.read(name, { withVersions: mayReadVersions(caller) }),
        );
      },
    }),
    route({
      method: 'POST',
      path: '/api/job-types/{name}/accept',
      tag,
      permission: 'jobtype:write',
      operationId: 'acceptJobType',
      summary: 'Accept a job type of runners, and enable it',
      description:
        'Another version with the same payload schema, targets and access needs no acceptance.',
      params: OneType,
      body: AcceptRequest,
      example: {},
      responses: { 200: JobTypeWithVersions },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        runnerTypeResponse(
          caller,
          await runnerTypes.accept(caller, params.name, body.digest, expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'POST',
      path: '/api/job-types/{name}/disable',
      tag,
      permission: 'jobtype:write',
      operationId: 'disableJobType',
      summary: 'Disable a job type of runners',
      description:
        'No job of it is created, and queued ones wait, until it is accepted again. Running attempts go on.',
      params: OneType,
      responses: { 200: JobTypeWithVersions },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) =>
        runnerTypeResponse(
          caller,
          await runnerTypes.disable(caller, params.name, expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'DELETE',
      path: '/api/job-types/{name}',
      tag,
      permission: 'jobtype:write',
      operationId: 'deleteJobType',
      summary: 'Delete a job type of runners',
      description: 'Runners that still have it announce it again, and it waits for acceptance.',
      params: OneType,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await runnerTypes.remove(caller, params.name, expectedVersion(ifMatch));
        return noContent();
      },
    }),
  ];
}

const versionsView = ({ record, versions }: RunnerTypeView) =>
  versions.map(({ shape, firstSeenAt, ...version }) => ({
    ...version,
    accepted: shape === record.shape,
    firstSeenAt: firstSeenAt.toISOString(),
  }));
