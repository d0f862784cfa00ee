import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { siteSync } from '../../../examples/modules/siteSync.ts';
import { ConfigError } from '../../../platform/config.ts';
import {
  JobFailure,
  jobType,
  Type,
  type JobTools,
} from '../../../services/jobTypes/modules/jobType.ts';
import { JOB_TYPE_MARK } from '../../../services/jobTypes/modules/jobType.ts';
import { loadJobTypeModules } from '../../../services/jobTypes/modules/load.ts';
import { runModule } from '../../../services/jobTypes/modules/run.ts';
import { testJobType } from '../../../services/jobTypes/modules/testing.ts';
import { startSink, respondWith } from '../../support/sink.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'holdfast-modules-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** An object with this number of levels. */
function nested(levels: number): object {
  let value = {};
  for (let level = 1; level < levels; level++) value = { value };
  return value;
}

const write = async (name: string, text: string) => {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  return file;
};
const IMPORT = "import { jobType, Type, JobFailure } from 'holdfast/job-type';\n";
const definition = (name: string, more = '') =>
  `jobType({ apiVersion: 1, name: '${name}', summary: 's', payload: Type.Object({}), run: async () => ({}), ${more} })`;
const load = (...entries: string[]) => loadJobTypeModules(entries, { folder });
const namesOf = (types: Awaited<ReturnType<typeof load>>) =>
  types.map((type) => type[JOB_TYPE_MARK].name);
const problemsOf = (...entries: string[]) =>
  load(...entries).then(
    () => [],
    (error: unknown) => {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message
        .split('\n')
        .slice(1)
        .map((line) => line.trim());
    },
  );

describe('modules are loaded', () => {
  test('from files, patterns and packages, whatever they export', async () => {
    await write(
      'a/one.ts',
      `${IMPORT}const n: number = 1; void n;\nexport default ${definition('acme.one')};`,
    );
    await write(
      'a/two.js',
      `${IMPORT}export const types = [${definition('acme.two')}, ${definition('acme.three')}];`,
    );
    await write('a/two.test.ts', 'throw new Error("a test is not loaded");');
    await write('a/two.d.ts', 'export {};');
    await write(
      'node_modules/@acme/types/package.json',
      '{"name": "@acme/types", "type": "module", "exports": {"import": "./index.js"}}',
    );
    await write(
      'node_modules/@acme/types/index.js',
      `${IMPORT}export const t = ${definition('acme.packaged')};`,
    );
    const types = await load('a/*.[tj]s', '@acme/types', 'a/one.ts');
    expect(namesOf(types)).toEqual(['acme.one', 'acme.two', 'acme.three', 'acme.packaged']);
  });

  test('not at all without the setting', async () => {
    expect(await load()).toEqual([]);
  });

  test('and everything that is wrong is reported together, with its file', async () => {
    const syntax = await write('b/syntax.ts', 'export const = 1;');
    const throws = await write('b/throws.ts', 'throw new Error("no database\\nat all");');
    const empty = await write('b/empty.ts', 'export const x = 1;');
    const version = await write(
      'b/version.ts',
      `${IMPORT}export default jobType({ apiVersion: 2, name: 'acme.v' });`,
    );
    const many = await write(
      'b/wrong.ts',
      `${IMPORT}export const a = ${definition('core.mine')};
       export const b = ${definition('acme.inline', "lane: 'inline'")};
       export const c = ${definition('acme.redacts', 'redact: (x) => x')};
       export const d = ${definition('noDots')};
       export const e = jobType({ apiVersion: 1, name: 'acme.text', summary: 's', payload: { type: 'string' }, run: 5 });
       export const f = ${definition('acme.schema', "payload: { type: 'object', properties: { a: { $ref: 'https://example.net/s' } } }")};
       export const g = ${definition('acme.slow', 'timeoutMs: 90_000_000')};
       export const h = jobType(undefined);
       export const i = ${definition('acme.refers', "payload: Type.Object({ a: Type.String({ 'x-holdfast-ref': 'routers' }) })")};
       export const j = ${definition('acme.about', "targets: 'rack'")};`,
    );
    const first = await write('b/first.ts', `${IMPORT}export default ${definition('acme.twice')};`);
    const second = await write(
      'b/second.ts',
      `${IMPORT}export default ${definition('acme.twice')};`,
    );
    const problems = await problemsOf(
      ...['syntax', 'throws', 'empty', 'version', 'wrong', 'first', 'second'].map(
        (name) => `b/${name}.ts`,
      ),
      'b/*.mts',
      './missing.ts',
      'no package!',
      '@acme/missing',
    );
    const setting = 'HOLDFAST_JOB_TYPES:';
    expect(problems).toEqual([
      `${setting} "b/*.mts" matches no file`,
      `${setting} "./missing.ts" is not a file`,
      `${setting} "no package!" is neither a path nor the name of a package`,
      expect.stringMatching(`^${setting} ${syntax}: cannot be loaded: `),
      `${setting} ${throws}: cannot be loaded: no database`,
      `${setting} ${empty}: exports no job type; call jobType of holdfast/job-type and export what it returns`,
      expect.stringMatching(`^${setting} @acme/missing: cannot be loaded: Cannot find package`),
      `${setting} ${version}: acme.v: apiVersion 2 is not known; this version of Holdfast knows 1`,
      `${setting} ${many}: core.mine: names that begin with core are Holdfast's own`,
      `${setting} ${many}: acme.inline: lane must be "activity"`,
      `${setting} ${many}: acme.redacts: redact is not a known field`,
      expect.stringContaining('noDots: name must be two or more words'),
      `${setting} ${many}: acme.text: payload.type must be "object"`,
      `${setting} ${many}: acme.text: run must be a function`,
      expect.stringMatching(
        `${many}: acme.schema: payload is not a valid schema: can't resolve reference`,
      ),
      `${setting} ${many}: acme.slow: timeoutMs must be at most 86400000`,
      `${setting} ${many}: jobType was called without a definition`,
      `${setting} ${many}: acme.refers: payload refers to "routers", which no resource of the inventory is called`,
      `${setting} ${many}: acme.about: targets must be one of none, site, device`,
      `${setting} acme.twice is declared 2 times: ${first}, ${second}`,
    ]);
  });

  test('within a limit: one that never ends loading is a problem', async () => {
    const file = await write('c/waits.ts', 'await new Promise(() => setInterval(() => {}, 1e6));');
    await expect(loadJobTypeModules([file], { folder, loadMs: 20 })).rejects.toThrow(
      `${file}: cannot be loaded: it was not ready after 0.02 s`,
    );
  });
});

const declare = (run: (payload: { key?: string }, tools: JobTools) => unknown, more: object = {}) =>
  jobType({
    apiVersion: 1,
    name: 'acme.tried',
    summary: 's',
    payload: Type.Object({
      key: Type.Optional(Type.String({ 'x-holdfast-secret': true })),
      n: Type.Integer({ default: 3 }),
    }),
    run: (payload, tools) => Promise.resolve(run(payload, tools) as object),
    ...more,
  });

describe('the test kit', () => {
  test('returns log, progress and result, with defaults in the payload', async () => {
    const type = declare((payload, { log, progress, attempt }) => {
      log('warn', 'seen', { payload });
      progress(250, 'done');
      return { attempt };
    });
    expect(await testJobType(type, {}, { attempt: 2 })).toEqual({
      status: 'succeeded',
      result: { attempt: 2 },
      failure: null,
      log: [{ level: 'warn', message: 'seen', data: { payload: { n: 3 } } }],
      progress: [{ percent: 100, message: 'done' }],
      artifacts: [],
    });
  });

  test.each([
    [
      'a JobFailure',
      () => {
        throw new JobFailure('busy', 'Later', { retryAfterMs: 5 });
      },
      { code: 'busy', message: 'Later', retryable: true, retryAfterMs: 5 },
    ],
    [
      'a code that is none',
      () => {
        throw new JobFailure('Not A Code', 'x', { retryable: false });
      },
      { code: 'failed', message: 'x', retryable: false },
    ],
    [
      'another error',
      () => {
        throw new TypeError('no');
      },
      { code: 'unexpected', message: 'no', retryable: true },
    ],
    [
      'a result that is no object',
      () => 'text',
      { code: 'invalid_result', message: 'The result must be an object', retryable: false },
    ],
    [
      'a result that is no JSON',
      () => ({ n: 1n }),
      expect.objectContaining({ code: 'invalid_result' }),
    ],
    [
      'a result that is nested too deep',
      () => nested(100),
      { code: 'invalid_result', message: 'The result is nested deeper than 99 levels' },
    ],
    [
      'a result that is nested so deep that it cannot be read',
      () => nested(100_000),
      expect.objectContaining({ code: 'invalid_result', retryable: false }),
    ],
    [
      'a result that is too large',
      () => ({ text: 'x'.repeat(2_000_000) }),
      expect.objectContaining({ code: 'result_too_large' }),
    ],
  ])('reports %s as a failed job does', async (_what, run, failure) => {
    expect(await testJobType(declare(run), {})).toMatchObject({ status: 'failed', failure });
  });

  test('refuses what creating the job would refuse', async () => {
    expect(
      await testJobType(
        declare(() => ({})),
        { n: 'x' },
      ),
    ).toMatchObject({
      status: 'refused',
      failure: { message: '/n must be an integer' },
    });
    const wrong = declare(() => ({}), { name: 'core.mine' });
    await expect(testJobType(wrong, {})).rejects.toThrow("core are Holdfast's own");
  });

  test('passes a type its target, and refuses another one', async () => {
    const about = declare((_, { target }) => ({ target }), { targets: 'site' });
    const target = { kind: 'site', id: 's1', name: 'ams1', tenantId: 't', siteId: 's1' } as const;
    expect(await testJobType(about, {}, { target })).toMatchObject({ result: { target } });
    for (const wrong of [{}, { target: { ...target, kind: 'device' as const } }])
      expect(await testJobType(about, {}, wrong)).toMatchObject({
        status: 'refused',
        failure: { message: '/target must be of the kind site' },
      });
  });

  test('cancels, and ends attempts that take too long', async () => {
    const waits = (more?: object) =>
      declare(
        (_, { signal }) =>
          new Promise((_resolve, reject) => {
            const stop = () => reject(signal.reason as Error);
            if (signal.aborted) stop();
            signal.addEventListener('abort', stop);
          }),
        more,
      );
    expect(await testJobType(waits(), {}, { cancelAfterMs: 5 })).toMatchObject({
      status: 'cancelled',
    });
    expect(await testJobType(waits(), {}, { cancelAfterMs: 0 })).toMatchObject({
      status: 'cancelled',
    });
    expect(await testJobType(waits({ timeoutMs: 100 }), {})).toMatchObject({
      status: 'failed',
      failure: { code: 'timed_out' },
    });
  });

  test('sends requests to public addresses and to those that it allows', async () => {
    const sink = await startSink();
    sink.respond('/list', respondWith(200, { 'content-type': 'text/plain' }, 'hello'));
    const type = declare(async (_, { http }) => {
      const { status, body } = await http.request({ url: sink.url('/list') });
      return { status, body };
    });
    const allowed = await testJobType(type, {}, { outboundAllow: ['127.0.0.0/8'] });
    expect(allowed.result).toEqual({ status: 200, body: 'hello' });
    expect(await testJobType(type, {})).toMatchObject({
      failure: { code: 'address_not_allowed', retryable: false },
    });
    await sink.stop();
  });

  test('names what the test has to answer itself', async () => {
    const type = declare((_, { inventory }) => inventory.get('sites', 'x'));
    expect(await testJobType(type, {})).toMatchObject({
      failure: { message: 'testJobType needs inventory.get' },
    });
  });
});

describe('a module that runs', () => {
  test('writes no secret of its payload, whatever it does with it', async () => {
    const key = 'k"e\ny-4711';
    const outcome = await testJobType(
      declare((payload, { log, progress }) => {
        log('info', `with ${payload.key}`, { deep: [{ [payload.key ?? '']: payload.key }] });
        log('info', 'text', payload.key as never);
        progress(1, payload.key);
        return { echoed: { payload } };
      }),
      { key },
    );
    expect(outcome.status).toBe('succeeded');
    expect(JSON.stringify(outcome)).not.toContain('4711');
    for (const thrown of [new JobFailure('x', key), new Error(key)]) {
      const failed = await testJobType(
        declare(() => {
          throw thrown;
        }),
        { key },
      );
      expect(failed.failure?.message).toBe('********');
      expect(String((failed.error as Error | undefined)?.stack)).not.toContain('4711');
    }
  });

  const noTools = (signal: AbortSignal, log: JobTools['log']) =>
    ({ signal, log, secrets: {} }) as JobTools;

  test('is left when it does not heed its signal, and can do nothing more', async () => {
    const cancel = new AbortController();
    const lines: string[] = [];
    const late = Promise.withResolvers<JobTools>();
    const type = declare((_, tools) => {
      late.resolve(tools);
      return new Promise(() => undefined);
    });
    const running = runModule(
      type[JOB_TYPE_MARK],
      {},
      {
        ...noTools(cancel.signal, (_level, message) => void lines.push(message)),
        http: { request: () => Promise.reject(new Error('sent')) },
      },
      { stopMs: 10 },
    );
    const tools = await late.promise;
    cancel.abort(new Error('cancelled'));
    await expect(running).rejects.toThrow('cancelled');
    tools.log('info', 'too late');
    await expect(tools.http.request({ url: 'x' })).rejects.toMatchObject({ code: 'attempt_ended' });
    expect(lines).toEqual(['The module has not stopped 0.01 s after its signal']);
  });

  test('stores files within limits, under names that a file can have', async () => {
    const store = (...files: [name: string, content: unknown][]) =>
      testJobType(
        declare(async (_, { artifact }) => {
          const stored: object[] = [];
          for (const [name, content] of files) stored.push(await artifact(name, content as string));
          return { stored };
        }),
        {},
      );
    const stream = (async function* () {
      yield await Promise.resolve('b');
      yield new TextEncoder().encode('c');
    })();
    const { artifacts, result } = await store(['a.txt', 'first'], ['b', stream], ['a.txt', '']);
    expect(artifacts.map(({ name, content }) => [name, content.toString()])).toEqual([
      ['a.txt', ''],
      ['b', 'bc'],
    ]);
    expect(result).toMatchObject({ stored: [{ bytes: 5 }, { bytes: 2 }, { bytes: 0 }] });

    const many = Array.from({ length: 21 }, (_, i): [string, string] => [`f${i}`, 'x']);
    const large = Buffer.alloc(40 * 1_048_576);
    for (const [files, code] of [
      [many, 'limit_reached'],
      [
        [
          ['one', large],
          ['two', large],
        ],
        'limit_reached',
      ],
      [[['../up', 'x']], 'invalid_artifact'],
      [[['number', 7]], 'invalid_artifact'],
      [[['numbers', [7]]], 'invalid_artifact'],
    ] as [[string, unknown][], string][]) {
      const { status, failure } = await store(...files);
      expect([status, failure?.code, failure?.retryable]).toEqual(['failed', code, false]);
    }
  });

  test('gets the secrets that it asks for, and writes none of them', async () => {
    const type = jobType({
      apiVersion: 1,
      name: 'test.secret',
      summary: 'Says its secret',
      payload: Type.Object({}),
      secrets: { TOKEN: { secret: 'token' } },
      run: (_, { log, secrets: { TOKEN = '' } }) => {
        log('info', `${TOKEN} ${encodeURIComponent(TOKEN)} ${JSON.stringify(TOKEN)}`);
        return Promise.reject(new JobFailure('refused', `not ${TOKEN}`, { retryable: false }));
      },
    });
    const missing = await testJobType(type, {});
    expect(missing.failure).toMatchObject({ code: 'secret_missing', retryable: false });
    const TOKEN = 'open "sesame"/7';
    const { log, failure } = await testJobType(type, {}, { secrets: { TOKEN, OTHER: 'x' } });
    expect(log.map(({ message }) => message)).toEqual(['******** ******** "********"']);
    expect(failure?.message).toBe('not ********');
  });

  test('is not run if its secrets cannot all be masked', async () => {
    let runs = 0;
    const type = jobType({
      apiVersion: 1,
      name: 'test.full',
      summary: 'Has many secrets',
      payload: Type.Object({
        keys: Type.Array(Type.String(), { 'x-holdfast-secret': true }),
      }),
      secrets: { TOKEN: { secret: 'token' } },
      run: () => Promise.resolve({ runs: ++runs }),
    });
    const keys = Array.from({ length: 6_000 }, (_, at) => `key-${at}`);
    const { failure } = await testJobType(type, { keys }, { secrets: { TOKEN: 'open sesame' } });
    expect(failure).toMatchObject({ code: 'secrets_not_maskable', retryable: false });
    expect(runs).toBe(0);
  });

  test('cannot break the log with levels and data that do not exist', async () => {
    const { log } = await testJobType(
      declare((_, tools) => {
        const circular: Record<string, unknown> = {};
        circular.self = circular;
        tools.log('fatal' as never, 5 as never, circular);
        tools.progress(Number.NaN, 7 as never);
      }),
      {},
    );
    expect(log).toEqual([{ level: 'info', message: '5', data: { leftOut: 'not JSON' } }]);
  });
});

test('the example copies sites: it creates new ones and updates addresses', async () => {
  const applied: unknown[] = [];
  const inventory = {
    list: (_resource: string, { where }: { where?: object } = {}) =>
      Promise.resolve({
        items: JSON.stringify(where).includes('ams1')
          ? [{ id: 'sit_1', version: 4, name: 'ams1', address: 'old' }]
          : [],
        next: null,
      }),
    apply: (mutations: readonly unknown[]) => {
      applied.push(...mutations);
      return Promise.resolve({ changes: [], hiddenChanges: mutations.length });
    },
  };
  const payload = { url: 'https://example.net/sites', token: 'a-token', dryRun: false };
  const http = (request: { headers?: object }) => ({
    body: JSON.stringify([{ name: 'ams1', address: 'new' }, { name: 'fra1' }]),
    status: JSON.stringify(request.headers).includes('Bearer a-token') ? 200 : 401,
  });
  const outcome = await testJobType(siteSync, payload, { http, inventory });
  expect(outcome.result).toEqual({ changed: 2 });
  expect(applied).toEqual([
    { resource: 'sites', operation: 'update', record: { id: 'sit_1', version: 4, address: 'new' } },
    { resource: 'sites', operation: 'create', record: { name: 'fra1' } },
  ]);
  const refused = await testJobType(siteSync, { ...payload, token: 'other' }, { http, inventory });
  expect(refused.failure).toMatchObject({ code: 'site_list_failed', retryable: false });
});
