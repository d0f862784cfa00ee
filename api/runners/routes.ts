import { Type } from 'typebox';
import { RUNNER_LIFETIME_SECONDS } from '../../domain/runners/records.ts';
import type { PoolView, Pools } from '../../services/runners/pools.ts';
import type { Runners, RunnerView } from '../../services/runners/runners.ts';
import { expectedVersion } from '../http/etag.ts';
import { idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { listSchema } from '../http/pagination.ts';
import { created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id } from '../http/schemas.ts';
import { PoolChange, PoolName, PoolRecord, PoolRequest, RunnerRecord } from './schemas.ts';

const readers = ['jobtype:read', 'jobtype:write'] as const;

const OnePool = Type.Object({ name: PoolName }, closed);
const OneRunner = Type.Object({ id: Id('rnr') }, closed);

const RUNNERS = defineList({
  name: 'runners',
  id: 'rnr',
  item: RunnerRecord,
  title: 'RunnerList',
  fields: {
    pool: textField({ schema: PoolName }),
    tokenId: idField(Id('tok')),
    seenAt: timeField(),
  },
});

const poolView = ({ pool, runners, load }: PoolView): PoolRecord => ({
  id: pool.name,
  name: pool.name,
  description: pool.description,
  acceptTypes: [...pool.acceptTypes],
  tenantSharePercent: pool.tenantSharePercent,
  runners,
  ...load,
  createdBy: pool.createdBy,
  createdAt: pool.createdAt.toISOString(),
  updatedAt: pool.updatedAt.toISOString(),
  version: pool.version,
});
/** What changes without a new version of the pool. */
const VOLATILE = ['runners', 'slots', 'runningJobs', 'queuedJobs'];

const poolResponse = (view: PoolView): HttpResponse => ok(poolView(view));

const runnerView = ({ runner, runningJobs }: RunnerView): RunnerRecord => ({
  id: runner.id,
  pool: runner.pool,
  name: runner.name,
  version: runner.version,
  slots: runner.slots,
  runningJobs,
  types: { ...runner.types },
  tokenId: runner.tokenId,
  address: runner.address,
  alive: runner.seenAt.getTime() > Date.now() - RUNNER_LIFETIME_SECONDS * 1_000,
  reachesTemporal: runner.reachesTemporal,
  startedAt: runner.startedAt.toISOString(),
  seenAt: runner.seenAt.toISOString(),
});

/** Routes of pools and their runners. */
export const runnerRoutes = ({ pools, runners }: { pools: Pools; runners: Runners }): Route[] => [
  route({
    method: 'GET',
    path: '/api/pools',
    tag: 'Runners',
    permission: readers,
    operationId: 'listPools',
    summary: 'List the pools of runners',
    responses: { 200: listSchema(PoolRecord, 'PoolList') },
    handle: async () => ok({ items: (await pools.list()).map(poolView), nextCursor: null }),
  }),
  route({
    method: 'POST',
    path: '/api/pools',
    tag: 'Runners',
    permission: 'jobtype:write',
    operationId: 'createPool',
    summary: 'Create a pool of runners',
    description:
      'Runners take jobs of the pool with a token of a service account that names it (`pools`).',
    body: PoolRequest,
    example: { name: 'ams', description: 'Runners in Amsterdam', acceptTypes: ['net.*'] },
    responses: { 201: PoolRecord },
    replayResponse: async (_caller, name) => {
      const view = await pools.read(name);
      return created(`/api/pools/${name}`, poolView(view));
    },
    handle: async ({ caller, body: { name, ...fields } }) => {
      const view = await pools.create(caller, name, fields);
      return created(`/api/pools/${name}`, poolView(view));
    },
  }),
  route({
    method: 'GET',
    path: '/api/pools/{name}',
    tag: 'Runners',
    permission: readers,
    operationId: 'getPool',
    summary: 'Get a pool of runners',
    params: OnePool,
    responses: { 200: PoolRecord },
    handle: async ({ params }) => poolResponse(await pools.read(params.name)),
  }),
  route({
    method: 'PUT',
    path: '/api/pools/{name}',
    tag: 'Runners',
    permission: 'jobtype:write',
    operationId: 'updatePool',
    summary: 'Update a pool of runners',
    params: OnePool,
    body: PoolChange,
    example: { acceptTypes: ['net.*', 'backup-check.*'] },
    responses: { 200: PoolRecord },
    headers: ['If-Match'],
    current: async ({ params }) => poolView(await pools.read(params.name)),
    volatile: VOLATILE,
    handle: async ({ caller, params, body, ifMatch }) =>
      poolResponse(await pools.update(caller, params.name, body, expectedVersion(ifMatch))),
  }),
  route({
    method: 'DELETE',
    path: '/api/pools/{name}',
    tag: 'Runners',
    permission: 'jobtype:write',
    operationId: 'deletePool',
    summary: 'Delete a pool that has no job types',
    params: OnePool,
    responses: { 204: null },
    headers: ['If-Match'],
    handle: async ({ caller, params, ifMatch }) => {
      await pools.remove(caller, params.name, expectedVersion(ifMatch));
      return noContent();
    },
  }),
  route({
    method: 'GET',
    path: '/api/runners',
    tag: 'Runners',
    permission: readers,
    operationId: 'listRunners',
    summary: 'List runners',
    description: 'A runner that stopped reporting is listed for an hour.',
    query: RUNNERS.query,
    responses: { 200: RUNNERS.schema },
    handle: ({ query }) => RUNNERS.respond(query, (request) => runners.list(request), runnerView),
  }),
  route({
    method: 'GET',
    path: '/api/runners/{id}',
    tag: 'Runners',
    permission: readers,
    operationId: 'getRunner',
    summary: 'Get a runner',
    params: OneRunner,
    responses: { 200: RunnerRecord },
    handle: async ({ params }) => ok(runnerView(await runners.read(params.id))),
  }),
  route({
    method: 'DELETE',
    path: '/api/runners/{id}',
    tag: 'Runners',
    permission: 'jobtype:write',
    operationId: 'deleteRunner',
    summary: 'Forget a runner',
    description:
      'Its slots no longer count, and it begins no further jobs until it announces itself again. To keep it out, revoke its token.',
    params: OneRunner,
    responses: { 204: null },
    handle: async ({ caller, params }) => {
      await runners.remove(caller, params.id);
      return noContent();
    },
  }),
];
