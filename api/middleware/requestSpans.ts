import type { Middleware } from 'koa';
import { inSpan, inSpanOf, type ActiveSpan } from '../../platform/tracing.ts';

/** Requests of monitoring, every few seconds. */
const PROBES = new Set(['/livez', '/readyz', '/metrics']);

/**
 * Makes a span of each request, if traces are on. A trusted gateway may send the trace that it belongs to
 * (`traceparent`); other clients must not decide which requests are recorded.
 */
export const requestSpans =
  (isTrusted: (address: string | undefined) => boolean): Middleware =>
  (ctx, next) => {
    if (PROBES.has(ctx.path)) return next();
    const { method } = ctx;
    const options = {
      kind: 'server',
      attributes: { 'http.request.method': method, 'url.scheme': ctx.protocol },
    } as const;
    const handle = async (span: ActiveSpan) => {
      await next();
      const route = ctx.state.route as string | undefined;
      if (route !== undefined) span.rename(`${method} ${route}`);
      span.set({
        'http.response.status_code': ctx.status,
        'holdfast.request.id': ctx.state.requestId as string,
        ...(route !== undefined && { 'http.route': route }),
      });
      if (ctx.status >= 500) span.fail(String(ctx.status));
    };
    const sent = isTrusted(ctx.req.socket.remoteAddress) ? ctx.get('traceparent') : '';
    return sent === '' ? inSpan(method, options, handle) : inSpanOf(sent, method, options, handle);
  };
