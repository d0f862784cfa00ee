import { Type, type Static } from 'typebox';
import type { Config } from '../../platform/config.ts';
import { ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Nullable } from '../http/schemas.ts';
import { STATIC } from '../http/strangerLimits.ts';

const ConsoleSettings = Type.Object(
  {
    version: Type.String({ description: 'Version of Holdfast.' }),
    origin: Type.String({
      description: 'Origin under which browsers open the pages; cookies belong to it.',
    }),
    temporalUi: Nullable(
      Type.Object(
        { url: Type.String(), namespace: Type.String() },
        {
          title: 'TemporalUi',
          ...closed,
          description: 'Temporal Web UI and the namespace of the workflows; null if none is set.',
        },
      ),
    ),
    timezone: Type.String({ description: 'Time zone of the server.' }),
  },
  { title: 'ConsoleSettings', ...closed },
);
export type ConsoleSettings = Static<typeof ConsoleSettings>;

type Deps = { config: Pick<Config, 'temporalUiUrl'> & { temporal: { namespace: string } } };

/** What pages need to know before anyone has signed in. */
export const consoleRoutes = (
  { config: { temporalUiUrl, temporal } }: Deps,
  version: string,
): Route[] => [
  route({
    method: 'GET',
    path: '/api/console',
    operationId: 'getConsoleSettings',
    tag: 'Reference',
    public: 'pages need it before signing in; it has no records and no secrets',
    strangers: STATIC,
    summary: 'Get the settings of the user interface',
    responses: { 200: ConsoleSettings },
    handle: ({ origin }) =>
      Promise.resolve(
        ok({
          version,
          origin,
          temporalUi:
            temporalUiUrl === undefined
              ? null
              : { url: temporalUiUrl, namespace: temporal.namespace },
          timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        }),
      ),
  }),
];
