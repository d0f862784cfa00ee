import { jobType, Type } from 'holdfast/job-type';

export const aboutSite = jobType({
  apiVersion: 1,
  name: 'test.about-site',
  summary: 'Returns its target',
  payload: Type.Object(
    { peer: Type.Optional(Type.String({ 'x-holdfast-ref': 'sites' })) },
    { additionalProperties: false },
  ),
  targets: 'site',
  access: 'open',
  run: (_, { target }) => Promise.resolve({ target }),
});
