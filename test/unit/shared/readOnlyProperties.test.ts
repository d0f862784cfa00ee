import { expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { changedProperties, readOnlyProperties } from '../../../api/http/presentedRecord.ts';
import { route } from '../../../api/http/route.ts';
import { ok } from '../../../api/http/response.ts';
import { Warnings } from '../../../api/http/schemas.ts';

const closed = { additionalProperties: false };
const record = { id: 'x_1', name: 'old', version: 1 };
const change = route({
  method: 'PUT',
  path: '/api/things/{id}',
  tag: 'Things',
  operationId: 'updateThing',
  summary: 'Change a thing',
  permission: 'job:write',
  body: Type.Object({ name: Type.Optional(Type.String()) }, closed),
  responses: {
    200: Type.Object({
      id: Type.String(),
      name: Type.String(),
      version: Type.Integer(),
      warnings: Warnings,
    }),
  },
  current: () => Promise.resolve(record),
  handle: () => Promise.resolve(ok(record)),
});

test('advice about an earlier request is ignored when it is sent back', async () => {
  const warnings = [{ code: 'owner_denied', pointer: '/jobType', message: 'later' }];
  const request = { caller: {} as never, params: undefined, ifMatch: undefined };
  const changed = await changedProperties(change, readOnlyProperties(change, [change]), request, {
    ...record,
    name: 'new',
    warnings,
  });
  expect(changed).toEqual({ name: 'new' });
});
