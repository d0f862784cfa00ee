import type { Readable } from 'node:stream';
import type { Static, TObject, TSchema } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Answer } from './answer.ts';
import type { Preferences } from '../http/prefer.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/**
 * A permission that the caller must hold somewhere, or the reason why it is enough to be known (`signedIn`), to have a
 * session (`session`), or why nothing is needed (`public`).
 */
type Guard =
  | { permission: Permission; signedIn?: never; session?: never; public?: never }
  | { signedIn: string; permission?: never; session?: never; public?: never }
  | { session: string; permission?: never; signedIn?: never; public?: never }
  | { public: string; permission?: never; signedIn?: never; session?: never };

type Schema<S> = S extends TSchema ? Static<S> : undefined;

/** A checked request, as a handler sees it. */
export type RouteRequest<P, Q, B> = {
  caller: Caller;
  params: P;
  query: Q;
  body: B;
  prefer: Preferences;
  ifMatch: string | undefined;
  /** A request header, when it was sent. */
  header(name: string): string | undefined;
  /** Where browsers reach this API. */
  origin: string;
  /** Aborted when the client has gone or the server stops. */
  signal: AbortSignal;
  /** The file that is sent, where the route takes one. */
  upload: Upload | undefined;
};

export type Upload = { contentType: string; source: Readable };

type Shape<P, Q, B> = {
  method: Method;
  /** Path with parameters in braces, as in OpenAPI. */
  path: string;
  area: string;
  summary: string;
  params?: P;
  query?: Q;
  body?: B;
  /** How the body comes; an HTML form where a browser is sent here with one. */
  bodyType?: 'json' | 'form';
  /** The handler checks the body, for an answer that names more than the schema knows. It is JSON, no more is sure. */
  bodyCheckedLater?: true;
  /** The body is a file of one of these content types, which the handler reads as it comes. */
  upload?: { types: readonly string[]; limitBytes: number };
  /** Identity headers must name the tenant; elsewhere it is the platform unless they do. */
  tenantNamed?: boolean;
  /** The body may hold a password or another secret. */
  secretBody?: true;
  /** The handler asks for the permission itself, where the record stands, so that a denial is noted with the record. */
  checkedInside?: true;
  /** A password for one login is enough: clients ask this before it can be changed. */
  anyPassword?: true;
  /** A person's browser lands here: failures are shown as a page. */
  page?: true;
  /** Success answers: status → schema, or null where there is no JSON body. */
  answers: Readonly<Record<number, TSchema | null>>;
  /** Content type of an answer that is not JSON. */
  produces?: string;
  /** If-Match is required where the configuration says so. */
  matchable?: true;
  /** Request headers that the handler reads, for the documentation. */
  headers?: readonly ('Prefer' | 'If-Match' | 'Last-Event-ID')[];
  /**
   * For a stream: looks again, from time to time, with the caller as they are then; an error ends the stream.
   */
  watch?(request: RouteRequest<Schema<P>, Schema<Q>, Schema<B>>, began: Caller): Promise<unknown>;
  handle(request: RouteRequest<Schema<P>, Schema<Q>, Schema<B>>): Promise<Answer>;
  /**
   * Makes `Idempotency-Key` work on this route: the answer for a record that an earlier request with the same
   * key has committed. Every POST that creates has it.
   */
  recover?(caller: Caller, id: string): Promise<Answer>;
};

/** A route as the application holds it. */
export type Route = Guard & Shape<TObject | undefined, TObject | undefined, TSchema | undefined>;

/** Declares a route. One without a permission, or a reason to have none, does not compile. */
export const route = <
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TSchema | undefined = undefined,
>(
  declared: Guard & Shape<P, Q, B>,
): Route => declared;
