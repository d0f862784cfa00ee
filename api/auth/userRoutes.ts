import { Type, type Static } from 'typebox';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../services/auth/passwords.ts';
import type { UserFilter, Users, UserWithPassword as Made } from '../../services/auth/users.ts';
import { created, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import { userView } from '../access/presenter.ts';
import { ProviderId, TenantId, UserRecord, UserWithPassword } from '../access/schemas.ts';
import { Id, Name, Nullable } from '../http/schemas.ts';

const area = 'Users';
const closed = { additionalProperties: false };

const OneUser = Type.Object({ id: Id('usr') }, closed);

/** Length is judged in the service, in characters as people count them; this only bounds the work. */
export const Password = Type.String({
  minLength: 1,
  maxLength: 4 * MAX_PASSWORD_LENGTH,
  description: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters, not a common password.`,
});
export const Username = Name({ maxLength: 128, description: 'Compared without regard to case.' });
const Email = Type.String({ format: 'email', maxLength: 254 });

const UserRequest = Type.Object(
  {
    username: Username,
    displayName: Type.Optional(Name()),
    email: Type.Optional(Nullable(Email)),
    tenantId: Type.Optional(TenantId('Where the account stands; your tenant unless given.')),
    password: Type.Optional(Password),
    mustChangePassword: Type.Optional(
      Type.Boolean({ default: true, description: 'The password is for one login.' }),
    ),
  },
  { title: 'UserRequest', ...closed },
);
const UserChange = Type.Object(
  {
    displayName: Type.Optional(Name()),
    email: Type.Optional(Nullable(Email)),
    tenantId: Type.Optional(TenantId()),
    enabled: Type.Optional(Type.Boolean({ description: 'false ends the sessions, at once.' })),
  },
  { title: 'UserChange', ...closed },
);
const UserQuery = Type.Object(
  {
    providerId: Type.Optional(ProviderId),
    username: Type.Optional(Name()),
    enabled: Type.Optional(Type.Boolean()),
    tenantId: Type.Optional(TenantId()),
    ...pageQuery,
  },
  closed,
);
const ResetRequest = Type.Object(
  { password: Type.Optional(Password) },
  { title: 'ResetPasswordRequest', ...closed },
);

/** People with accounts. */
export function userRoutes(users: Users): Route[] {
  // A login changes what is shown and is no new version.
  const tagOf = ({ version, lastLoginAt }: Made['user']) =>
    etagOf(version, lastLoginAt?.getTime() ?? 0);
  const one = (user: Made['user']) => ok(userView(user), { etag: tagOf(user) });
  const made = ({ user, oneTimePassword }: Made): Answer => ({
    ...created(
      `/api/users/${user.id}`,
      { ...userView(user), oneTimePassword },
      { etag: tagOf(user), 'cache-control': 'no-store' },
    ),
    showOnce: oneTimePassword !== null,
  });

  return [
    route({
      method: 'GET',
      path: '/api/users',
      area,
      permission: 'user:read',
      summary: 'List users, newest first',
      query: UserQuery,
      answers: { 200: listOf(UserRecord, 'UserList') },
      handle: ({ caller, query }) =>
        listAnswer(
          'users',
          'usr',
          query,
          (page) => users.list(caller, filterOf(query), page),
          userView,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/users',
      area,
      permission: 'user:write',
      summary: 'Make a local account',
      body: UserRequest,
      secretBody: true,
      answers: { 201: UserWithPassword },
      recover: async (caller, id) =>
        made({ user: await users.read(caller, id), oneTimePassword: null }),
      handle: async ({ caller, body }) => made(await users.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/users/{id}',
      area,
      permission: 'user:read',
      summary: 'Read a user',
      params: OneUser,
      answers: { 200: UserRecord },
      handle: async ({ caller, params }) => one(await users.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/users/{id}',
      area,
      permission: 'user:write',
      summary: 'Change, disable or enable a user',
      params: OneUser,
      body: UserChange,
      answers: { 200: UserRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await users.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'POST',
      path: '/api/users/{id}/reset-password',
      area,
      permission: 'user:write',
      summary: 'Give a local account a password for one login, and end its sessions',
      params: OneUser,
      body: ResetRequest,
      answers: { 200: UserWithPassword },
      handle: async ({ caller, params, body }) => {
        const { user, oneTimePassword } = await users.resetPassword(
          caller,
          params.id,
          body.password,
        );
        return ok(
          { ...userView(user), oneTimePassword },
          { etag: tagOf(user), 'cache-control': 'no-store' },
        );
      },
    }),
  ];
}

const filterOf = ({
  providerId,
  username,
  enabled,
  tenantId,
}: Static<typeof UserQuery>): UserFilter => ({
  ...(providerId !== undefined && { providerId }),
  ...(username !== undefined && { username }),
  ...(enabled !== undefined && { enabled }),
  ...(tenantId !== undefined && { tenantId }),
});
