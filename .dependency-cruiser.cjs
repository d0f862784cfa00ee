/** Who may import whom; the table is in docs/architecture.md. */
const layer = (name, allowed) => ({
  name: `${name}-imports`,
  severity: 'error',
  from: { path: `^${name}/` },
  to: {
    path: '^(api|services|domain|db|temporal|activities|platform|dev|bench|test|ui|composition)',
    pathNot: [`^${name}/`, ...allowed],
  },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: ['\\.(cjs|js)$', '^test/', '^bench/', '^dev/', '/cli\\.ts$', '^api/main'],
      },
      to: {},
    },
    {
      name: 'not-to-dev-dependency',
      severity: 'error',
      from: { path: '^(api|services|domain|db|temporal|activities|platform|composition)' },
      to: { dependencyTypes: ['npm-dev'] },
    },
    layer('domain', []),
    layer('platform', ['^domain/']),
    layer('db', ['^domain/', '^platform/']),
    layer('services', ['^domain/', '^db/', '^platform/', '^temporal/contracts\\.ts$']),
    layer('activities', [
      '^services/',
      '^domain/',
      '^platform/log\\.ts$',
      '^temporal/contracts\\.ts$',
    ]),
    {
      name: 'workflows-imports',
      severity: 'error',
      comment: 'Workflow code is deterministic: contracts and domain, and types of activities.',
      from: { path: '^temporal/workflows/' },
      to: {
        path: '^(api|services|db|temporal|activities|platform)',
        pathNot: ['^temporal/workflows/', '^temporal/contracts\\.ts$', '^activities/'],
      },
    },
    {
      name: 'workflows-import-activities-as-types',
      severity: 'error',
      from: { path: '^temporal/workflows/' },
      to: { path: '^activities/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'temporal-imports',
      severity: 'error',
      from: { path: '^temporal/', pathNot: '^temporal/workflows/' },
      to: { path: '^(api|services|domain|dev|bench|test)', pathNot: ['^domain/'] },
    },
    {
      name: 'api-imports',
      severity: 'error',
      from: { path: '^api/' },
      to: { path: '^(db|temporal|activities|dev|bench|test)' },
    },
    {
      name: 'only-the-process-composes',
      severity: 'error',
      from: { path: '^(services|domain|db|temporal|activities|platform)' },
      to: { path: '^composition' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(node_modules|\\.holdfast|coverage)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
