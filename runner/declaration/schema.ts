import { Type, type Static } from 'typebox';
import { RemoteTypeDefinition } from '../../domain/runners/definition.ts';

/** Signals that may ask a command to stop. SIGKILL follows them. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

const VARIABLE = '^[A-Za-z_][A-Za-z0-9_]*$';
const VARIABLE_RULE = 'must be the name of a variable: letters, digits and underscores';

/** The form of the name of a secret, which is a file of the runner's secrets folder. */
const SECRET_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const VariableName = Type.String({
  pattern: VARIABLE,
  'x-rule': VARIABLE_RULE,
});

const MAX_VARIABLES = { maxProperties: 100, propertyNames: VariableName };

const SecretName = Type.String({
  pattern: SECRET_NAME,
  'x-rule': 'must be the name of a secret: letters, digits, dots, hyphens and underscores',
});

/** How a secret reaches the command: as the value of the variable, or as a file that it names. */
const SecretUse = Type.Union([
  Type.Object({ env: SecretName }, { additionalProperties: false }),
  Type.Object({ file: SecretName }, { additionalProperties: false }),
]);

const Run = Type.Object(
  {
    argv: Type.Array(Type.String({ maxLength: 8_192 }), { minItems: 1, maxItems: 200 }),
    cwd: Type.Optional(text(1_024)),
    env: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 32_768 }), MAX_VARIABLES),
    ),
    secrets: Type.Optional(Type.Record(Type.String(), SecretUse, MAX_VARIABLES)),
  },
  { additionalProperties: false },
);

const Stop = Type.Object(
  {
    signal: Type.Enum([...STOP_SIGNALS], { default: 'SIGTERM' }),
    graceSeconds: Type.Number({ minimum: 0, maximum: 300, default: 10 }),
  },
  { additionalProperties: false, default: {} },
);

const ExitCode = Type.Object(
  {
    code: Type.String({
      // `interrupted` is reserved for attempts that an orderly stop ends: the retry policy does not count them.
      pattern: '^(?!interrupted$)[a-z][a-z0-9_]{0,63}$',
      'x-rule': 'must be an error code: a to z, 0 to 9 and underscores; not interrupted',
    }),
    message: Type.Optional(text(500)),
    retryable: Type.Optional(Type.Boolean()),
    retryAfterSeconds: Type.Optional(Type.Number({ minimum: 0.05, maximum: 86_400 })),
  },
  { additionalProperties: false },
);

const Limits = Type.Object(
  {
    memoryMb: Type.Optional(Type.Integer({ minimum: 16, maximum: 1_048_576 })),
    processes: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  },
  { additionalProperties: false },
);

/** A declared command: what a YAML file in a types folder says. docs/job-types.md describes it. */
export const Declaration = Type.Object(
  {
    apiVersion: Type.Literal('holdfast/v1'),
    ...RemoteTypeDefinition.properties,
    run: Run,
    stop: Stop,
    exitCodes: Type.Optional(
      Type.Record(Type.String(), ExitCode, {
        maxProperties: 255,
        propertyNames: Type.String({
          pattern: '^([1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])$',
          'x-rule': 'must be an exit code from 1 to 255',
        }),
      }),
    ),
    limits: Type.Optional(Limits),
  },
  { additionalProperties: false },
);
export type Declaration = Static<typeof Declaration>;
