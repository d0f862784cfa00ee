import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Static, TObject, TSchema } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { HttpResponse } from './response.ts';
import type { Preferences } from './prefer.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Several permissions, each of which suffices. Errors name the first one. */
type AnyOf = readonly [Permission, ...Permission[]];

/**
 * Who may call a route: callers with `permission`, or one of several, in any resource scope; or, each
 * with the reason, any authenticated caller (`signedIn`), any caller with a session (`session`), a runner
 * with its token (`runner`), anyone (`public`).
 */
type RouteAccess =
  | (Only<'permission'> & { permission: Permission | AnyOf })
  | (Only<'signedIn'> & { signedIn: string })
  | (Only<'session'> & { session: string })
  | (Only<'runner'> & { runner: string })
  | PublicAccess;

type AccessKind = 'permission' | 'signedIn' | 'session' | 'runner' | 'public';
type Only<Kind extends AccessKind> = Partial<Record<Exclude<AccessKind, Kind>, never>>;

type PublicAccess = Only<'public'> & { public: string; strangers: StrangerLimits };

/** What a route allows clients whose identity is unknown. It is checked before a body is read. */
export type StrangerLimits = {
  /** Largest body of a request; 0 for a route without one. */
  bodyBytes: number;
  /** Share of the budget of its address that a request costs (`HOLDFAST_STRANGER_BUDGET`). */
  cost: number;
  /**
   * Requests of each group have slots of their own in a process: those that may wait for an identity
   * provider, those of people who are signed in already, and the others.
   */
  slots?: 'provider' | 'session';
};

/** The permissions that allow calling a route; each suffices. None for routes without permission. */
export const permissionsOf = ({ permission }: RouteAccess): readonly Permission[] =>
  permission === undefined ? [] : [permission].flat();

/** `If-None-Match` needs no declaration where the response is a record. */
export type RequestHeader =
  'Prefer' | 'If-Match' | 'If-None-Match' | 'Last-Event-ID' | 'Attempt-Token';

type StaticOf<S> = S extends TSchema ? Static<S> : undefined;
type ExampleOf<B> = B extends TSchema ? Static<B> : never;

/** A request that passed all checks, as the handler receives it. */
export type RouteRequest<P, Q, B> = {
  caller: Caller;
  params: P;
  query: Q;
  body: B;
  prefer: Preferences;
  ifMatch: string | undefined;
  /** Returns the value of a request header; undefined if it was not sent. */
  header(name: string): string | undefined;
  /** The origin under which browsers reach this API. */
  origin: string;
  /** True for an `Origin` header of our own pages. */
  isOwnOrigin(origin: string): boolean;
  /** Aborted when the client disconnects or the server stops. */
  signal: AbortSignal;
  /** The uploaded file, if the route declares `upload`. */
  upload: Upload | undefined;
};

export type Upload = {
  contentType: string;
  source: Readable;
  /** SHA-256 (base64url) of what has been read so far. */
  digest(): string;
};

/** Something that `include` adds to responses. */
export type Extra = {
  schema: TSchema;
  load(request: { caller: Caller; signal: AbortSignal }, body: unknown): Promise<unknown>;
};

type RouteDefinition<P, Q, B> = {
  method: Method;
  /** Path with parameters in braces, as in OpenAPI. */
  path: string;
  /** Heading of the API reference under which the operation is listed. */
  tag: string;
  /** Unique name of the operation: a verb and a noun, such as `createJob`. */
  operationId: string;
  /** One line in the imperative, such as `Create a job`. */
  summary: string;
  /** More about the operation, in Markdown. */
  description?: string;
  params?: P;
  query?: Q;
  body?: B;
  /** Largest body in bytes, where it is not that of all routes. */
  bodyBytes?: number;
  /** A valid request body, shown in the API reference. */
  example?: ExampleOf<B>;
  /**
   * An expensive read: the time that its requests use is limited for a caller and for a tenant
   * (`expensiveReads.ts`), and few run at a time, unless the service has slots for them. Lists with
   * `count`, `facets` or `q` need no declaration.
   */
  expensiveRead?: { hasOwnSlots?: true };
  /** Encoding of the body: JSON by default, `form` for a form that a browser posts. */
  bodyType?: 'json' | 'form';
  /**
   * The handler checks the body, to report more than the schema can. The body may be any JSON
   * value.
   */
  bodyCheckedInHandler?: true;
  /** The body is a file, which the handler reads as a stream: an example of each content type. */
  upload?: {
    examples: Readonly<Record<string, string>>;
    limitBytes: number;
    /** In which time the file must arrive, if that is more than the minute of other bodies. */
    maxSeconds?: number;
  };
  /** Identity headers must name a tenant. On other routes the default is `platform`. */
  requiresTenantHeader?: boolean;
  /** The body may hold a password or another secret. The response is not compressed. */
  secretBody?: true;
  /**
   * The handler checks the permission in the scope of the record, which denials are audited with.
   */
  permissionCheckedInHandler?: true;
  /** Why API tokens cannot call this: what it makes would outlive the token, or exceed its scope. */
  refusesTokens?: string;
  /** Each of these permissions lets a token call a route that needs none of other callers. */
  tokenPermissions?: AnyOf;
  /** The tokens of runners may call this too: it is about the token itself. */
  allowsRunners?: true;
  /** Tokens that only read may call this, although it is no GET: it changes no record. */
  allowsReadOnly?: true;
  /** Callers with a one-time password may call this: clients need it to change the password. */
  allowsOneTimePassword?: true;
  /**
   * Browsers navigate to this route: after an error, a client that prefers HTML continues at this
   * path of our origin, with the code of the problem and the id of the request in the query.
   */
  errorsLeadTo?(error: unknown): string;
  /** Responses other than problems: schema of the body by status; null without a JSON body. */
  responses: Readonly<Record<number, TSchema | null>>;
  /**
   * What `include` can add to the response besides names: the schema, and a function from the
   * request and the body of its response. It makes one query, however many records there are.
   */
  extras?: Readonly<Record<string, Extra>>;
  /** The record whose changes the response lists; `include=labels` covers their references. */
  changesOf?: TObject;
  /** What `include` accepts; see `withInclude`. */
  includes?: readonly string[];
  /** Content types of streamed responses. */
  produces?: readonly string[];
  /** Further statuses of problems than those that follow from the other properties. */
  problems?: readonly number[];
  /**
   * The record that a PUT changes, as GET presents it, for a caller who may change it but perhaps
   * not read it. Every PUT has it: properties of the body that have the present value are ignored.
   */
  current?(request: { caller: Caller; params: StaticOf<P> }): Promise<object>;
  /** Properties of that record that change without a new version; PUT ignores any value of them. */
  volatile?: readonly string[];
  /**
   * Properties that the handler gets even if unchanged, since others depend on them. Read-only ones
   * are in the body, too, marked as `readOnly`.
   */
  passUnchanged?: readonly string[];
  /** `If-Match` is required if `HOLDFAST_REQUIRE_IF_MATCH` is set. */
  ifMatchConfigurable?: true;
  /** Request headers that the API reference lists for this route. */
  headers?: readonly RequestHeader[];
  /**
   * For a stream: checks the access of the caller again, at intervals. An error ends the stream.
   */
  recheckAccess?(request: RouteRequest<StaticOf<P>, StaticOf<Q>, StaticOf<B>>): Promise<unknown>;
  /** Parameters that have no meaning for a stream: with `follow` they are refused. */
  notWithFollow?: readonly string[];
  /** For a stream of what the caller may read: it ends when where they hold the permission changes. */
  keepsScope?: true;
  handle(request: RouteRequest<StaticOf<P>, StaticOf<Q>, StaticOf<B>>): Promise<HttpResponse>;
  /**
   * Enables `Idempotency-Key`: returns the response for the record with `id`, which an earlier
   * request with the same key created or changed; null if no record has what was answered. Every POST
   * has it that would do more if it was repeated: create another record, replace a secret once more, send
   * another message.
   */
  replayResponse?(caller: Caller, id: string): Promise<HttpResponse | null>;
};

/** A route with the types of its parameters, query and body erased. */
export type Route = RouteAccess &
  RouteDefinition<TObject | undefined, TObject | undefined, TSchema | undefined>;

/** A request to any route, as its handler receives it. */
export type HandlerRequest = Parameters<Route['handle']>[0];

/** A request to a route from its first check to its response. */
export type Exchange<Deps> = { route: Route; deps: Deps; ctx: Context };

/** Declares a route. It must have a permission, or a reason to have none. */
export const route = <
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TSchema | undefined = undefined,
>(
  definition: RouteAccess & RouteDefinition<P, Q, B>,
): Route => definition;
