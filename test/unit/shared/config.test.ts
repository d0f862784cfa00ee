import { expect, test } from '@jest/globals';
import { ConfigError, readConfig } from '../../../platform/config.ts';

const DATABASE_URL = 'postgres://localhost/holdfast';

test('one error names every invalid variable and shows no secret', () => {
  const read = () =>
    readConfig({
      HOLDFAST_PORT: 'http',
      HOLDFAST_ROLE: 'queen',
      HOLDFAST_TRUSTED_GATEWAYS: '10.0.0.0/8, *',
      HOLDFAST_LOG_LEVEL: 'loud',
      HOLDFAST_TEMPORAL_CODEC_KEYS: 'k1:c2hvcnQtc2VjcmV0',
      TEMPORAL_TLS: 'perhaps',
      TEMPORAL_TLS_CLIENT_CERT_PATH: '/no/such/file',
    });
  expect(read).toThrow(ConfigError);
  let message = '';
  try {
    read();
  } catch (error) {
    message = String(error);
  }
  for (const name of [
    'DATABASE_URL',
    'HOLDFAST_PORT',
    'HOLDFAST_ROLE',
    'HOLDFAST_TRUSTED_GATEWAYS',
    'HOLDFAST_LOG_LEVEL',
    'HOLDFAST_TEMPORAL_CODEC_KEYS',
    'TEMPORAL_TLS',
    'TEMPORAL_TLS_CLIENT_CERT_PATH',
  ])
    expect(message).toContain(name);
  expect(message).not.toContain('c2hvcnQtc2VjcmV0');
});

test.each([
  'mysql://holdfast:secret@db/holdfast',
  'postgres://holdfast:sec/ret@db/holdfast',
  'postgres://holdfast:12/34@db/holdfast',
  'postgres://holdfast:sec?ret@db/holdfast',
  'postgres://holdfast:12?34@db/holdfast',
  'postgres://holdfast:sec#ret@db/holdfast',
  'postgres://holdfast:12#34@db/holdfast',
  'postgres://holdfast:secret@db:port/holdfast',
])('%s is no URL of a database, which is said without it', (url) => {
  const read = () => readConfig({ DATABASE_URL: url });
  expect(read).toThrow(/DATABASE_URL: must (start with|be) postgres:/);
  expect(read).not.toThrow(/sec|ret@|12|34/);
});

test.each([
  'postgres://db/holdfast',
  'postgresql://holdfast:s%2Fe%3Fc%23r%40t@[::1]:5433/holdfast?sslmode=verify-full',
  'postgres://holdfast@corp:se@cret@db/holdfast?application_name=a@b',
  'postgres:///holdfast?host=/run/postgresql&user=a@b',
  'postgres://holdfast:secret@/holdfast?host=/run/postgresql',
])('%s is a URL of a database', (url) => {
  expect(readConfig({ DATABASE_URL: url }).databaseUrl).toBe(url);
});

test.each([
  '0.0.0.0/0',
  '0.0.0.0/00',
  '0.0.0.0/1,128.0.0.0/1',
  '::/0',
  '2000::/3',
  '*',
  '10.0.0.1',
  '10.20/16',
  '010.0.0.0/8',
])('%s is no trusted gateway', (cidr) => {
  expect(() => readConfig({ DATABASE_URL, HOLDFAST_TRUSTED_GATEWAYS: cidr })).toThrow(
    'HOLDFAST_TRUSTED_GATEWAYS',
  );
});

test.each(['HOLDFAST_MASTER_KEYS', 'HOLDFAST_TEMPORAL_CODEC_KEYS'])(
  '%s must not name two keys alike',
  (name) => {
    const key = (fill: number) => Buffer.alloc(32, fill).toString('base64');
    expect(() => readConfig({ DATABASE_URL, [name]: `a:${key(1)},a:${key(2)}` })).toThrow(
      'two keys with the same id',
    );
    expect(readConfig({ DATABASE_URL, [name]: `a:${key(1)},b:${key(2)}` })).toBeDefined();
  },
);

test.each([
  'holdfast.example.net',
  'https://x.example/path',
  'https://x.example?y',
  'ftp://x.example',
  'https://user@x.example',
])('%s is no public URL', (url) => {
  expect(() => readConfig({ DATABASE_URL, HOLDFAST_PUBLIC_URL: url })).toThrow(
    'HOLDFAST_PUBLIC_URL',
  );
});

test.each([
  'temporal.example.net',
  'ftp://temporal.example.net',
  'https://user:secret@temporal.example.net',
  'https://temporal.example.net/?x=1',
])('%s is no address of the Temporal Web UI', (url) => {
  const read = () => readConfig({ DATABASE_URL, HOLDFAST_TEMPORAL_UI_URL: url });
  expect(read).toThrow('HOLDFAST_TEMPORAL_UI_URL');
  expect(read).not.toThrow('secret');
});

test('the address of the Temporal Web UI may have a path', () => {
  const HOLDFAST_TEMPORAL_UI_URL = 'https://tools.example.net/temporal/';
  const { temporalUiUrl } = readConfig({ DATABASE_URL, HOLDFAST_TEMPORAL_UI_URL });
  expect(temporalUiUrl).toBe('https://tools.example.net/temporal');
  expect(readConfig({ DATABASE_URL }).temporalUiUrl).toBeUndefined();
});

test('no gateway is trusted by default, and an API key is never sent without TLS', () => {
  const config = readConfig({ DATABASE_URL, TEMPORAL_API_KEY: 'k' });
  expect(config.trustedGateways).toEqual([]);
  expect(config.temporal.tls).toEqual({});
  expect(readConfig({ DATABASE_URL }).temporal.tls).toBeNull();
});

test('an unknown variable with the prefix HOLDFAST_ is reported', () => {
  const env = { HOLDFAST_TRUSTED_GATEWAY: 'typo', HOLDFAST_RUNNER_SLOTS: 'of another role' };
  expect(readConfig({ DATABASE_URL, ...env }).unknownVariables).toEqual([
    'HOLDFAST_TRUSTED_GATEWAY',
  ]);
});
