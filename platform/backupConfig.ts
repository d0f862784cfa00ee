import type { EnvReader } from './envReader.ts';
import type { S3Settings } from './stores/s3.ts';
import type { StoreKind } from './stores/store.ts';

/** Configured stores of archives. `store` is the one for new archives; undefined without any. */
export type BackupConfig = {
  folder: string | undefined;
  s3: S3Settings | undefined;
  store: StoreKind | undefined;
};

const S3 = 'HOLDFAST_BACKUP_S3_';

function s3(read: EnvReader): S3Settings | undefined {
  const bucket = read.text(`${S3}BUCKET`);
  const rest = {
    prefix: read.text(`${S3}PREFIX`) ?? '',
    region: read.text(`${S3}REGION`) ?? 'us-east-1',
    endpoint: read.origin(`${S3}ENDPOINT`, 'https://s3.example.net'),
    accessKeyId: read.text(`${S3}ACCESS_KEY_ID`) ?? '',
    secretAccessKey: read.text(`${S3}SECRET_ACCESS_KEY`) ?? '',
  };
  if (bucket === undefined) return undefined;
  if (!/^[a-z0-9][a-z0-9.-]{1,62}$/.test(bucket))
    read.addProblem(`${S3}BUCKET`, 'must be a valid bucket name');
  if (!/^[A-Za-z0-9/_.-]*$/.test(rest.prefix) || rest.prefix.startsWith('/'))
    read.addProblem(
      `${S3}PREFIX`,
      'must consist of letters, digits, / _ . and -, and must not start with /',
    );
  if (rest.accessKeyId === '' || rest.secretAccessKey === '')
    read.addProblem(
      `${S3}ACCESS_KEY_ID`,
      `and ${S3}SECRET_ACCESS_KEY are required with ${S3}BUCKET`,
    );
  return { bucket, ...rest };
}

/** Reads the variables of backup storage. */
export function readBackupConfig(read: EnvReader): BackupConfig {
  const found = { folder: read.text('HOLDFAST_BACKUP_DIR'), s3: s3(read) };
  const store = read.oneOf<StoreKind | 'auto'>(
    'HOLDFAST_BACKUP_STORE',
    ['folder', 's3', 'auto'],
    'auto',
  );
  if (store !== 'auto' && !found[store])
    read.addProblem('HOLDFAST_BACKUP_STORE', `names ${store}, which is not configured`);
  return {
    ...found,
    store:
      store === 'auto'
        ? found.s3
          ? 's3'
          : found.folder === undefined
            ? undefined
            : 'folder'
        : store,
  };
}
