import { Type } from 'typebox';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../services/auth/passwords.ts';
import type { Users, UserWithPassword as Made } from '../../services/auth/users.ts';
import { VISIBLE_LINE } from '../../domain/shared/oneLine.ts';
import { created, ok, type HttpResponse } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { flagField, idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { route, type Route } from '../http/route.ts';
import { userView } from './presenter.ts';
import { UserRecord, UserWithPassword } from './schemas.ts';
import { closed, Id, Name, NewName, Nullable, ProviderId, TenantId } from '../http/schemas.ts';

const tag = 'Users';

const OneUser = Type.Object({ id: Id('usr') }, closed);

/** The service checks the length in code points; this limit bounds the size of the request. */
export const Password = Type.String({
  minLength: 1,
  maxLength: 4 * MAX_PASSWORD_LENGTH,
  description: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters, not a common password.`,
});
const USERNAME = { maxLength: 128, description: 'Case-insensitive.' };
/** Of an account that may exist, perhaps since before `NewUsername`. */
export const Username = Name({ title: 'Username', ...USERNAME });
export const NewUsername = NewName({ title: 'NewUsername', ...USERNAME, ...VISIBLE_LINE });
const Email = Type.String({ format: 'email', maxLength: 254 });

const UserRequest = Type.Object(
  {
    username: NewUsername,
    displayName: Type.Optional(NewName()),
    email: Type.Optional(Nullable(Email)),
    tenantId: Type.Optional(
      TenantId('Tenant that the user belongs to; by default that of the caller.'),
    ),
    password: Type.Optional(Password),
    mustChangePassword: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Whether the password must be changed at the first login, which must be within 72 hours.',
      }),
    ),
  },
  { title: 'UserRequest', ...closed },
);
const UserChange = Type.Object(
  {
    displayName: Type.Optional(NewName()),
    email: Type.Optional(Nullable(Email)),
    tenantId: Type.Optional(TenantId()),
    enabled: Type.Optional(
      Type.Boolean({
        description: 'false ends all sessions of the user, and cancels running jobs.',
      }),
    ),
  },
  { title: 'UserChange', ...closed },
);
const USERS = defineList({
  name: 'users',
  id: 'usr',
  item: UserRecord,
  title: 'UserList',
  fields: {
    id: idField(Id('usr'), { facet: false }),
    username: textField({ filter: false, sort: true }),
    providerId: idField(ProviderId),
    enabled: flagField(),
    tenantId: idField(TenantId()),
    lastLoginAt: timeField({ nullable: true, sort: true }),
    createdAt: timeField(),
  },
  own: {
    username: Type.Optional(Name()),
    group: Type.Optional(
      Name({
        description: 'Group at the identity provider, as of the last login; case-sensitive.',
      }),
    ),
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: 'Text in the user name or the display name.',
      }),
    ),
  },
});
const ResetRequest = Type.Object(
  { password: Type.Optional(Password) },
  { title: 'ResetPasswordRequest', ...closed },
);

/** Routes for users. */
export function userRoutes(users: Users): Route[] {
  const userResponse = (user: Made['user']) => ok(userView(user));
  const passwordResponse = ({ user, oneTimePassword }: Made): HttpResponse => ({
    ...ok({ ...userView(user), oneTimePassword }, { 'cache-control': 'no-store' }),
    containsSecret: oneTimePassword !== null,
  });
  const createdResponse = (made: Made): HttpResponse => {
    const response = passwordResponse(made);
    const { body, headers } = response;
    return { ...response, ...created(`/api/users/${made.user.id}`, body, headers) };
  };

  return [
    route({
      method: 'GET',
      path: '/api/users',
      operationId: 'listUsers',
      tag,
      permission: 'user:read',
      summary: 'List users',
      query: USERS.query,
      responses: { 200: USERS.schema },
      handle: ({ caller, query }) =>
        USERS.respond(query, (request, filter) => users.list(caller, filter, request), userView),
    }),
    route({
      method: 'POST',
      path: '/api/users',
      operationId: 'createUser',
      tag,
      permission: 'user:write',
      refusesTokens: 'it makes a password',
      summary: 'Create a local account',
      description:
        'Without a password, a one-time password is generated and returned once. It is valid for 72 hours.',
      body: UserRequest,
      example: { username: 'carol', displayName: 'Carol Clark', email: 'carol@example.net' },
      secretBody: true,
      responses: { 201: UserWithPassword },
      replayResponse: async (caller, id) =>
        createdResponse({
          user: await users.read(caller, id, 'user:write'),
          oneTimePassword: null,
        }),
      handle: async ({ caller, body }) => createdResponse(await users.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/users/{id}',
      operationId: 'getUser',
      tag,
      permission: 'user:read',
      summary: 'Get a user',
      params: OneUser,
      responses: { 200: UserRecord },
      handle: async ({ caller, params }) => userResponse(await users.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/users/{id}',
      operationId: 'updateUser',
      tag,
      permission: 'user:write',
      summary: 'Update, disable or enable a user',
      params: OneUser,
      body: UserChange,
      example: { displayName: 'Carol Clark', enabled: true },
      responses: { 200: UserRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) => userView(await users.findToChange(caller, params.id)),
      volatile: ['groups', 'lastLoginAt'],
      handle: async ({ caller, params, body, ifMatch }) =>
        userResponse(await users.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST',
      path: '/api/users/{id}/reset-password',
      operationId: 'resetUserPassword',
      tag,
      permission: 'user:write',
      refusesTokens: 'it makes a password',
      summary: 'Reset the password of a local account',
      description:
        'Sets a one-time password, valid for 72 hours, and ends the sessions of the user. Without a password in the request, one is generated and returned once. API tokens stay valid.',
      params: OneUser,
      body: ResetRequest,
      example: {},
      secretBody: true,
      responses: { 200: UserWithPassword },
      replayResponse: async (caller, id) =>
        passwordResponse({
          user: await users.read(caller, id, 'user:write'),
          oneTimePassword: null,
        }),
      handle: async ({ caller, params, body }) =>
        passwordResponse(await users.resetPassword(caller, params.id, body.password)),
    }),
  ];
}
