import js from '@eslint/js';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';
import { functionSize } from './dev/functionSize.js';
import { noModels } from './dev/noModels.js';

export default tseslint.config(
  { ignores: ['node_modules/', '.holdfast/', 'coverage/', 'ui/app/schema.d.ts'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { holdfast: { rules: { 'function-size': functionSize, 'no-models': noModels } } },
    rules: {
      'holdfast/function-size': ['error', 60],
      '@typescript-eslint/consistent-type-definitions': ['error', 'type'],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowNullish: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        {
          argsIgnorePattern: '^_',
          varsIgnorePattern: '^_',
          caughtErrorsIgnorePattern: '^_',
          ignoreRestSiblings: true,
        },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        {
          ignoreArrowShorthand: true,
          ignoreVoidOperator: true,
          ignoreVoidReturningFunctions: true,
        },
      ],
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/no-misused-promises': [
        'error',
        { checksVoidReturn: { arguments: false } },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      // Functions here are closures; hardly any uses `this`.
      '@typescript-eslint/unbound-method': 'off',
      // A flag that another function sets during an await seems constant to this rule.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-invalid-void-type': ['error', { allowInGenericTypeArguments: true }],
      'no-console': 'error',
      'max-lines': ['error', { max: 600 }],
    },
  },
  {
    // Rows and JSON come untyped from the driver; their shape is stated where they are read.
    files: ['db/**', 'platform/schemaCheck.ts', 'test/**'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    files: ['test/**'],
    rules: {
      'holdfast/function-size': 'off',
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
    },
  },
  { files: ['api/**/*.ts'], rules: { 'holdfast/no-models': 'error' } },
  {
    files: ['{activities,api,domain,platform,services,temporal}/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: "CallExpression[callee.property.name='raw']", message: 'SQL belongs to db/.' },
      ],
    },
  },
  {
    files: ['ui/**/*.tsx'],
    ignores: ['ui/parts/Dialog.tsx', 'ui/parts/Reading.tsx', 'ui/app/shell/Rail.tsx'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: '@mantine/core',
          importNames: ['Modal'],
          message: 'parts/Dialog.tsx returns the focus.',
        },
        {
          name: '@mantine/core',
          importNames: ['Skeleton'],
          message: 'parts/Reading.tsx says what is being read.',
        },
        {
          name: '@tanstack/react-router',
          importNames: ['Link'],
          message: 'It calls a link to a list the current page: use parts/PageLink.tsx.',
        },
      ],
    },
  },
  {
    files: ['ui/**/*.{ts,tsx}'],
    ignores: ['ui/parts/clock.ts', 'ui/build.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...[
          "MemberExpression[object.name='Date'][property.name='now']",
          "NewExpression[callee.name='Date'][arguments.length=0]",
        ].map((selector) => ({
          selector,
          message: 'The clock of the browser may be wrong: use parts/clock.ts.',
        })),
      ],
    },
  },
  {
    files: ['ui/**/*.tsx', 'ui/**/use*.ts'],
    ...reactHooks.configs.flat['recommended-latest'],
  },
  // A migration is SQL in a function.
  { files: ['db/migrations/**'], rules: { 'holdfast/function-size': 'off' } },
  { files: ['**/*.js', '**/*.cjs'], ...tseslint.configs.disableTypeChecked },
  {
    files: ['api/auth/pages/*.js'],
    languageOptions: {
      globals: {
        document: 'readonly',
        fetch: 'readonly',
        location: 'readonly',
        URLSearchParams: 'readonly',
      },
    },
  },
  {
    files: ['ui/app/recover.js'],
    languageOptions: {
      globals: {
        addEventListener: 'readonly',
        document: 'readonly',
        fetch: 'readonly',
        HTMLLinkElement: 'readonly',
        HTMLScriptElement: 'readonly',
        location: 'readonly',
        sessionStorage: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  {
    files: ['ui/app/theme/early.js'],
    languageOptions: {
      globals: { document: 'readonly', localStorage: 'readonly', matchMedia: 'readonly' },
    },
  },
  { files: ['jest.config.js'], languageOptions: { globals: { process: 'readonly' } } },
  { files: ['**/*.cjs'], languageOptions: { globals: { module: 'readonly' } } },
);
