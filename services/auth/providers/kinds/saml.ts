import { randomBytes } from 'node:crypto';
import {
  parseGroups,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import { AppError } from '../../../../domain/shared/errors.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import {
  createThreadPool,
  ThreadLimitExceeded,
  type ThreadPool,
} from '../../../../platform/threadPool.ts';
import { xmlProblem } from '../../../../platform/xmlLimits.ts';
import { isRsaKey, parseCertificate } from './certificates.ts';
import { compareClocks, createStepRunner, runConnectionSteps } from './kind.ts';
import { createSamlClient, type SamlPending } from './samlClient.ts';
import type { SamlConfig } from './samlConfig.ts';
import type { SamlOutcome, SamlVerification } from './samlVerification.ts';

const TIMEOUT_MS = 10_000;
const RETRY_AFTER_SECONDS = 2;

/**
 * What a response may consist of. One with 1,000 groups has about 1,100 elements, 3,000 attributes
 * and 100 KiB; the largest possible one is verified in about 0.3 s.
 */
const RESPONSE_LIMITS = { text: 150_000, elements: 1_500, attributes: 5_000, depth: 32 };

/** Threads that verify responses. The time limit is for a busy machine that loads the library. */
export const createSamlThreads = () =>
  createThreadPool<SamlVerification, SamlOutcome>({
    module: new URL('./samlVerification.ts', import.meta.url),
    maxThreads: 2,
    maxQueued: 50,
    limitMs: 10_000,
    memoryMb: 128,
    busy: 'Too many SAML responses are being verified.',
  });

/** SAML 2.0 Web Browser SSO, initiated by the service provider. Assertions must be signed. */
export function createSaml(
  outbound: ProviderOutbound,
  threads: Pick<ThreadPool<SamlVerification, SamlOutcome>, 'run'>,
) {
  return {
    /** Our entity id, and the audience of assertions. */
    audienceOf: (config: SamlConfig, metadataUrl: string): string =>
      config.spEntityId ?? metadataUrl,

    /** URL to redirect the browser to, and what the response is checked against. */
    async start(
      config: SamlConfig,
      {
        relayState,
        callbackUrl,
        audience,
        now,
      }: { relayState: string; callbackUrl: string; audience: string; now: Date },
    ): Promise<{ url: string; pending: SamlPending }> {
      const pending = {
        requestId: `_${randomBytes(16).toString('hex')}`,
        callbackUrl,
        audience,
        startedAt: now.toISOString(),
      };
      const url = await (
        await createSamlClient(config, pending)
      ).getAuthorizeUrlAsync(relayState, undefined, {});
      return { url, pending };
    },

    /**
     * Verifies a response and returns the profile. Errors: `SignInRefused`; `too_many_requests` if
     * too many responses are being verified; `server_busy` if it could not be verified in time.
     */
    async finish(config: SamlConfig, pending: SamlPending, samlResponse: string): Promise<Profile> {
      const xml = Buffer.from(samlResponse, 'base64').toString('utf8');
      const problem = xmlProblem(xml, RESPONSE_LIMITS);
      if (problem !== undefined) throw new SignInRefused(problem);
      // The key signs requests; responses are verified without it.
      const { spPrivateKey, ...publicConfig } = config;
      const outcome = await threads
        .run({ config: publicConfig, pending, samlResponse })
        .catch((error: unknown) => {
          if (error instanceof ThreadLimitExceeded)
            // What a response may consist of is limited above: the machine is busy, or the process stops.
            throw new AppError('server_busy', 'The response could not be verified in time.', {
              retryAfterSeconds: RETRY_AFTER_SECONDS,
            });
          throw error;
        });
      if ('refused' in outcome) throw new SignInRefused(outcome.refused.slice(0, 300));
      return outcome.profile;
    },

    /** Service provider metadata (XML). */
    async metadata(
      { spPrivateKey, ...config }: SamlConfig,
      { callbackUrl, audience }: { callbackUrl: string; audience: string },
    ): Promise<string> {
      const client = await createSamlClient(config, {
        requestId: '_',
        callbackUrl,
        audience,
        startedAt: '',
      });
      return client.generateServiceProviderMetadata(null, null);
    },

    /** Groups from sample attributes. */
    groupsFromClaims: (config: SamlConfig, claims: Readonly<Record<string, unknown>>): string[] =>
      parseGroups(claims[config.groupsAttribute]),

    /**
     * Tests the certificates, the connection, the metadata (if a URL is configured) and the clock.
     */
    async test(config: SamlConfig): Promise<{ steps: TestStep[] }> {
      const { steps, step } = createStepRunner();
      await step('certificates', () => {
        const expiryDates = config.idpCertificates.map(expiryOf);
        if (expiryDates.every((end) => end.getTime() < Date.now()))
          throw new Error('Every certificate has expired.');
        if (config.spPrivateKey !== undefined && !isRsaKey(config.spPrivateKey))
          throw new Error('spPrivateKey is not an RSA private key: it cannot sign requests.');
        return Promise.resolve({
          message: `Valid until ${expiryDates.map((end) => end.toISOString().slice(0, 10)).join(', ')}.`,
        });
      });
      const http = outbound.httpFor(config);
      await runConnectionSteps(step, config.entryPoint, outbound.guardFor(config), TIMEOUT_MS);
      const date = await step('answer', async () => {
        const response = await http.request({
          url: config.entryPoint,
          method: 'GET',
          headers: {},
          timeoutMs: TIMEOUT_MS,
        });
        return { message: `It answers ${response.status}.`, value: response.headers.date };
      });
      const { metadataUrl } = config;
      if (metadataUrl === undefined) {
        steps.push({
          name: 'metadata',
          status: 'skipped',
          message: 'metadataUrl is not set.',
          durationMs: 0,
        });
      } else {
        await step('metadata', async () => {
          const response = await http.request({
            url: metadataUrl,
            method: 'GET',
            headers: {},
            timeoutMs: TIMEOUT_MS,
          });
          if (!matchesMetadata(response.body, config))
            throw new Error(
              'The URL returns no metadata of this provider with one of the certificates.',
            );
          return { message: `It names ${config.idpEntityId} and one of the certificates.` };
        });
      }
      await step('clock', () => Promise.resolve(compareClocks(date, config.clockSkewSeconds)));
      return { steps };
    },
  };
}

const expiryOf = (text: string): Date => new Date(parseCertificate(text).validTo);

/**
 * True if the document is the metadata of this provider. The test reports nothing else about it:
 * otherwise it could be used to read pages of the private network.
 */
function matchesMetadata(body: string, config: SamlConfig): boolean {
  const entityId = /<(?:\w+:)?EntityDescriptor\b[^<>]*\bentityID="([^"]*)"/.exec(body)?.[1];
  const compactBody = body.replaceAll(/\s/g, '');
  return (
    entityId === config.idpEntityId &&
    config.idpCertificates.some((pem) =>
      compactBody.includes(parseCertificate(pem).raw.toString('base64')),
    )
  );
}
