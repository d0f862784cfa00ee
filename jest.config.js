/** Real PostgreSQL, one real Temporal server for all files, a database and a task queue for each. */
export default {
  // `npm run record-histories` runs the recorder, which writes files, instead of the tests.
  testMatch: [
    process.env.RECORD_HISTORIES === '1'
      ? '<rootDir>/test/replay/*.record.ts'
      : '<rootDir>/test/**/*.test.ts',
  ],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'esnext', parser: { syntax: 'typescript' } },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  globalSetup: '<rootDir>/test/support/globalSetup.ts',
  globalTeardown: '<rootDir>/test/support/globalTeardown.ts',
  testTimeout: 60_000,
  maxWorkers: 2,
  // A worker keeps what its files loaded, and collects it again and again: with 2 GB it is several times as slow.
  workerIdleMemoryLimit: '900MB',
  modulePathIgnorePatterns: ['<rootDir>/.holdfast'],
};
