import type { Middleware } from 'koa';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { problemPage } from '../http/page.ts';
import { PROBLEM_TYPE, toAppError, toProblem } from '../kit/problem.ts';

type Deps = { ids: Ids; log: Log; metrics: Metrics };

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives each request its id, turns errors into problems, counts, and logs one line when the answer is sent. */
export function requestContext({ ids, log, metrics }: Deps): Middleware {
  return async (ctx, next) => {
    const began = performance.now();
    const given = ctx.get('x-request-id');
    const requestId = REQUEST_ID.test(given) ? given : ids.next('req');
    ctx.state.requestId = requestId;
    ctx.set('x-request-id', requestId);
    try {
      await next();
    } catch (error) {
      const known = toAppError(error);
      if (known.code === 'internal')
        log.error({ err: error, requestId, path: ctx.path }, 'a request failed unexpectedly');
      const { extra } = known;
      if (extra.retryAfterSeconds !== undefined)
        ctx.set('retry-after', String(extra.retryAfterSeconds));
      if (extra.allow) ctx.set('allow', extra.allow.join(', '));
      const problem = toProblem(known, requestId);
      // RFC 9110, 15.5.2 and RFC 6750, 3.
      if (problem.status === 401)
        ctx.set(
          'www-authenticate',
          known.code === 'session_invalid' ? 'Bearer error="invalid_token"' : 'Bearer',
        );
      const asPage = ctx.state.page === true && ctx.accepts('json', 'html') === 'html';
      ctx.status = problem.status;
      ctx.body = asPage ? problemPage(problem) : problem;
      ctx.type = asPage ? 'text/html' : PROBLEM_TYPE;
    }
    const elapsedMs = performance.now() - began;
    if (/(^|,)\s*timing\s*(,|$)/i.test(ctx.get('prefer')))
      ctx.set('server-timing', `total;dur=${elapsedMs.toFixed(1)}`);
    ctx.res.once('close', () => {
      const path = (ctx.state.route as string | undefined) ?? 'none';
      metrics.httpSeconds.observe(
        { method: ctx.method, path, status: ctx.status },
        elapsedMs / 1_000,
      );
      log.debug(
        {
          requestId,
          method: ctx.method,
          path: ctx.path,
          status: ctx.status,
          ms: Math.round(elapsedMs),
        },
        'request',
      );
    });
  };
}
