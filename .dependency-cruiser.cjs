/** Who may import whom; the table is in docs/architecture.md. Imports of types count as imports. */
const LAYERS =
  'activities|api|bench|db|dev|domain|examples|platform|processes|runner|services|temporal|test|ui';

/** A layer may import itself and the `allowed` layers only. */
const layer = (name, allowed, { path = `^${name}/`, pathNot } = {}) => ({
  name: `${name}-imports`,
  severity: 'error',
  from: { path, ...(pathNot && { pathNot }) },
  to: { path: `^(${LAYERS})/`, pathNot: [path, ...allowed] },
});

/** Files of `from` may import nothing else of the files below `of` than `allowed`. */
const only = (name, comment, from, of, allowed) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: { path: of, pathNot: allowed },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: ['\\.(cjs|js)$', '^test/', '^bench/', '^processes/', '^examples/'],
      },
      to: {},
    },
    {
      name: 'not-to-dev-dependency',
      severity: 'error',
      from: { path: `^(${LAYERS})/`, pathNot: ['^(test|bench|dev|ui)/'] },
      to: { dependencyTypes: ['npm-dev'] },
    },
    layer('domain', []),
    layer('platform', ['^domain/']),
    layer('db', ['^domain/', '^platform/']),
    layer('services', ['^domain/', '^db/', '^platform/']),
    layer('runner', ['^domain/', '^platform/']),
    layer('activities', ['^services/', '^domain/', '^platform/(log|stores/store)\\.ts$']),
    layer('temporal', ['^domain/', '^activities/', '^db/', '^platform/', '^temporal/workflows/'], {
      pathNot: '^temporal/workflows/',
    }),
    layer('workflows', ['^domain/', '^activities/'], { path: '^temporal/workflows/' }),
    {
      name: 'workflows-import-activities-as-types',
      comment: 'Workflow code is deterministic: it knows only the signatures of activities.',
      severity: 'error',
      from: { path: '^temporal/workflows/' },
      to: { path: '^activities/', dependencyTypesNot: ['type-only'] },
    },
    layer('api', ['^services/', '^domain/', '^platform/']),
    layer('dev', ['^db/', '^domain/', '^platform/']),
    layer('processes', [
      '^(activities|api|db|dev|domain|platform|runner|services|temporal)/',
      '^ui/build\\.ts$',
    ]),
    layer('bench', [
      '^(activities|api|db|dev|domain|platform|services|temporal)/',
      '^processes/cli/demoEstate\\.ts$',
      '^ui/build\\.ts$',
      '^runner/command/(runFolder|preparedRun)\\.ts$',
    ]),
    // Networks, JSON, errors and times are the same in the browser: the files need nothing of Node.
    layer('ui', [
      '^domain/access/tenantId\\.ts$',
      '^domain/inventory/(cabling|cidr|importLimits)\\.ts$',
      '^domain/shared/(counted|durations|errorMessage|jsonObject|multiples|names|nouns)\\.ts$',
      '^domain/views/views\\.ts$',
      '^platform/strictJson\\.ts$',
    ]),
    only(
      'modules-import-their-api',
      'Examples use what a module anywhere can use.',
      '^examples/modules/',
      '.',
      ['^services/jobTypes/modules/(jobType|testing)\\.ts$'],
    ),
    {
      name: 'runner-without-database',
      comment: 'A process with the role runner loads nothing of the server, which needs memory.',
      severity: 'error',
      from: { path: '^processes/runner\\.ts$' },
      to: {
        path: '^(api|db|services)/|node_modules/(pg|knex|objection)/',
        reachable: true,
      },
    },
    {
      name: 'test-kit-without-database',
      comment: 'holdfast/job-type and its test kit run without PostgreSQL and Temporal.',
      severity: 'error',
      from: { path: '^services/jobTypes/modules/(jobType|testing)\\.ts$' },
      to: {
        path: '^(db|temporal|activities)/|node_modules/(pg|knex|objection|@temporalio)/',
        reachable: true,
      },
    },
    only(
      'parts-know-no-page',
      'Parts are shared by the pages of all areas.',
      '^ui/parts/',
      '^ui/',
      ['^ui/parts/', '^ui/app/(api|problem|schema\\.d)\\.ts$'],
    ),
    only(
      'app-knows-no-area',
      'The frame is shared by the pages of all areas.',
      '^ui/app/',
      '^ui/',
      ['^ui/(app|parts)/'],
    ),
    only(
      'no-area-in-another',
      'What two areas need is a part, or belongs to the frame.',
      '^ui/areas/([^/]+)/',
      '^ui/areas/',
      ['^ui/areas/$1/'],
    ),
    {
      name: 'ui-is-built-not-imported',
      comment: 'The server serves the bundle; only ui/build.ts runs in Node.',
      severity: 'error',
      from: { pathNot: '^(ui|test)/' },
      to: { path: '^ui/', pathNot: '^ui/build\\.ts$' },
    },
    {
      name: 'tracing-is-loaded-late',
      comment: 'Without a collector nothing of OpenTelemetry is loaded.',
      severity: 'error',
      from: { pathNot: '^platform/tracing/openTelemetry\\.ts$' },
      to: { path: 'node_modules/@opentelemetry/' },
    },
    {
      name: 'tracing-is-imported-dynamically',
      severity: 'error',
      from: {},
      to: { path: '^platform/tracing/openTelemetry\\.ts$', dependencyTypesNot: ['dynamic-import'] },
    },
    only(
      'no-area-in-shared',
      'Shared code must not depend on an area.',
      '^services/shared/',
      '^services/',
      ['^services/shared/'],
    ),
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
