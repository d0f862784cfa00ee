import './processes/nodeVersion.js';

/**
 * Three groups of tests. `unit` needs no server and runs in seconds (`npm run test:unit`); `servers` shares one real
 * PostgreSQL and one real Temporal server, which the global setup starts when a test of the group is to run; `console`
 * uses the same servers, the built console and a real browser.
 * Node runs the TypeScript as it is, in tests as in the product.
 */
const SHARED = {
  runner: '<rootDir>/test/support/jest/runner.ts',
  setupFiles: ['<rootDir>/test/support/jest/setup.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {},
  modulePathIgnorePatterns: ['<rootDir>/.holdfast'],
};

// `npm run record-histories` runs the recorder, which writes files, instead of the tests.
const recording = process.env.RECORD_HISTORIES === '1';

const UNIT = {
  ...SHARED,
  displayName: 'unit',
  testMatch: ['<rootDir>/test/unit/**/*.test.ts'],
};

const SERVERS = {
  ...SHARED,
  displayName: 'servers',
  testMatch: recording
    ? ['<rootDir>/test/replay/*.record.ts']
    : ['<rootDir>/test/{attacks,contract,integration,replay,workflow}/**/*.test.ts'],
  globalSetup: '<rootDir>/test/support/globalSetup.ts',
  globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
};

const CONSOLE = {
  ...SHARED,
  displayName: 'console',
  testMatch: ['<rootDir>/test/console/**/*.test.ts'],
  globalSetup: '<rootDir>/test/support/console/globalSetup.ts',
  globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
};

export default {
  projects: recording ? [SERVERS] : [UNIT, SERVERS, CONSOLE],
  reporters: ['default', '<rootDir>/test/support/jest/durationReporter.ts'],
  testSequencer: '<rootDir>/test/support/jest/longestFirst.ts',
  // Twice the cores of a small machine: many files mostly wait.
  maxWorkers: 4,
};
