import { Type } from 'typebox';
import type { UserSessions } from '../../services/auth/userSessions.ts';
import { sessionView } from './presenter.ts';
import { noContent } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id } from '../http/schemas.ts';
import { SESSIONS } from './routes.ts';

const tag = 'Users';

const OneUser = Type.Object({ id: Id('usr') }, closed);
const OneSession = Type.Object({ id: Id('usr'), sessionId: Id('ses') }, closed);

/** Routes for the sessions of other users. */
export const userSessionRoutes = (userSessions: UserSessions): Route[] => [
  route({
    method: 'GET',
    path: '/api/users/{id}/sessions',
    operationId: 'listUserSessions',
    tag,
    permission: ['user:read', 'user:write'],
    summary: 'List the sessions of a user',
    params: OneUser,
    query: SESSIONS.query,
    responses: { 200: SESSIONS.schema },
    handle: ({ caller, params, query }) =>
      SESSIONS.respond(
        query,
        (request) => userSessions.list(caller, params.id, request),
        (session) => sessionView(session, caller.session?.id),
      ),
  }),
  route({
    method: 'DELETE',
    path: '/api/users/{id}/sessions',
    operationId: 'endUserSessions',
    tag,
    permission: 'user:write',
    summary: 'End all sessions of a user',
    description:
      'For your own account, this includes the session of the request. API tokens stay valid.',
    params: OneUser,
    responses: { 204: null },
    handle: async ({ caller, params }) => {
      await userSessions.endAll(caller, params.id);
      return noContent();
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/users/{id}/sessions/{sessionId}',
    operationId: 'endUserSession',
    tag,
    permission: 'user:write',
    summary: 'End a session of a user',
    params: OneSession,
    responses: { 204: null },
    handle: async ({ caller, params }) => {
      await userSessions.end(caller, params.id, params.sessionId);
      return noContent();
    },
  }),
];
