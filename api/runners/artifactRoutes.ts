import { Type, type Static } from 'typebox';
import {
  ARTIFACT_NAME,
  MAX_ARTIFACT_BYTES,
  MAX_ARTIFACT_SECONDS,
  type ArtifactData,
} from '../../domain/runners/artifacts.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Artifacts } from '../../services/runners/artifacts.ts';
import { listSchema } from '../http/pagination.ts';
import { requireRunner } from '../http/authorize.ts';
import { ok, streamResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id, Timestamp } from '../http/schemas.ts';
import { attemptToken } from './protocolRoutes.ts';

const ArtifactName = Type.String({
  pattern: ARTIFACT_NAME,
  'x-rule':
    'must be 1 to 128 letters, digits, dots, hyphens and underscores, a letter or digit first',
});
const OneJob = Type.Object({ jobId: Id('job') }, closed);
const OneArtifact = Type.Object({ jobId: Id('job'), name: ArtifactName }, closed);

const ArtifactRecord = Type.Object(
  {
    name: Type.String(),
    attempt: Type.Integer({ description: 'The attempt that stored it.' }),
    bytes: Type.Integer(),
    sha256: Type.String({ description: 'SHA-256 of the content, in hexadecimal digits.' }),
    createdAt: Timestamp,
  },
  { title: 'JobArtifact', ...closed },
);

const artifactView = ({
  name,
  attempt,
  bytes,
  sha256,
  createdAt,
}: ArtifactData): Static<typeof ArtifactRecord> => ({
  name,
  attempt,
  bytes,
  sha256,
  createdAt: createdAt.toISOString(),
});

/** Routes of the files that jobs of runners leave. */
export const artifactRoutes = ({
  artifacts,
  slots,
}: {
  artifacts: Artifacts;
  slots: { downloads: Slots };
}): Route[] => [
  route({
    method: 'GET',
    path: '/api/jobs/{jobId}/artifacts',
    tag: 'Jobs',
    permission: 'job:read',
    operationId: 'listJobArtifacts',
    summary: 'List the artifacts of a job',
    params: OneJob,
    responses: { 200: listSchema(ArtifactRecord, 'JobArtifactList') },
    handle: async ({ caller, params }) => {
      const items = (await artifacts.list(caller, params.jobId)).map(artifactView);
      return ok({ items, nextCursor: null });
    },
  }),
  route({
    method: 'GET',
    path: '/api/jobs/{jobId}/artifacts/{name}',
    tag: 'Jobs',
    permission: 'job:read',
    operationId: 'getJobArtifact',
    summary: 'Download an artifact of a job',
    description: 'Nothing in it is masked.',
    params: OneArtifact,
    produces: ['application/octet-stream'],
    responses: { 200: null },
    recheckAccess: ({ caller, params }) => artifacts.list(caller, params.jobId),
    handle: async ({ caller, params, signal }) => {
      const release = await slots.downloads.take(caller, signal);
      try {
        const { source } = await artifacts.read(caller, params.jobId, params.name);
        source.once('close', release);
        return streamResponse('application/octet-stream', source, params.name);
      } catch (error) {
        release();
        throw error;
      }
    },
  }),
  route({
    method: 'PUT',
    path: '/api/runner/jobs/{jobId}/artifacts/{name}',
    tag: 'Runner protocol',
    runner: 'for the attempt of the header `Attempt-Token`',
    operationId: 'putAttemptArtifact',
    summary: 'Store a file of an attempt',
    params: OneArtifact,
    upload: {
      examples: { 'application/octet-stream': 'port,state\ne0,up\n' },
      limitBytes: MAX_ARTIFACT_BYTES,
      maxSeconds: MAX_ARTIFACT_SECONDS,
    },
    headers: ['Attempt-Token'],
    responses: { 200: ArtifactRecord },
    problems: [409],
    handle: async ({ caller, params, header, upload, signal }) => {
      if (!upload) throw invalidField('body', '', 'required', 'must be the file');
      const { jobId, name } = params;
      const { source } = upload;
      const file = { name, source };
      const runner = requireRunner(caller);
      return ok(
        artifactView(await artifacts.put(runner, jobId, attemptToken(header), file, signal)),
      );
    },
  }),
];
