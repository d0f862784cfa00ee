import type { Config } from '../../platform/config.ts';
import { createFolderStore } from '../../platform/stores/folder.ts';
import { createS3Store } from '../../platform/stores/lazyS3.ts';
import { APP_VERSION } from '../../platform/version.ts';
import { createAuditArchives } from '../../services/audit/auditArchives.ts';
import { createAuditArchiver } from '../../services/audit/archiver.ts';
import { createApplyRestore } from '../../services/backups/applyRestore.ts';
import { createArchives } from '../../services/backups/archives.ts';
import { createBackupCompletion } from '../../services/backups/backupCompletion.ts';
import { createBackupRun } from '../../services/backups/backupRun.ts';
import { createBackups } from '../../services/backups/backups.ts';
import { createConcurrencyLimit } from '../../services/backups/concurrencyLimit.ts';
import { createPreRestoreBackup } from '../../services/backups/preRestoreBackup.ts';
import { createBackupReconcile } from '../../services/backups/reconcile.ts';
import { createRestoreCompletion } from '../../services/backups/restoreCompletion.ts';
import { createRestoreHistory } from '../../services/backups/restoreHistory.ts';
import { createRestoreRun } from '../../services/backups/restoreRun.ts';
import { createRestores } from '../../services/backups/restores.ts';
import type { Core } from './core.ts';

const composeStores = ({ backups: { folder, s3 }, outboundAllow }: Config) => ({
  ...(folder !== undefined && { folder: createFolderStore(folder) }),
  ...(s3 && { s3: createS3Store(s3, outboundAllow) }),
});

/** Builds backups and restores. */
export function composeBackups(core: Core, bulkRows?: number) {
  const { config, vault } = core;
  const stores = composeStores(config);
  const archives = createArchives({ stores, current: config.backups.store, vault });
  const concurrencyLimit = createConcurrencyLimit();
  const backups = createBackups({ ...core, archives });
  const backupCompletion = createBackupCompletion({ ...core, archives });
  const restoreCompletion = createRestoreCompletion(core);
  const restoreRun = createRestoreRun({ ...core, archives, concurrencyLimit });
  return {
    archives,
    auditArchives: createAuditArchives({ ...core, archives }),
    auditArchiver: createAuditArchiver({
      ...core,
      archives,
      concurrencyLimit,
      appVersion: APP_VERSION,
    }),
    backups,
    restores: createRestores({ ...core, backups }),
    history: createRestoreHistory({ ...core, backups }),
    backupCompletion,
    restoreCompletion,
    reconcile: createBackupReconcile({ ...core, archives, backupCompletion, restoreCompletion }),
    /** What the activities of backup and restore workflows call. */
    runs: {
      backupRun: createBackupRun({
        ...core,
        archives,
        concurrencyLimit,
        appVersion: APP_VERSION,
      }),
      backupCompletion,
      restoreRun,
      applyRestore: createApplyRestore({ ...core, concurrencyLimit, steps: restoreRun, bulkRows }),
      restoreCompletion,
      preRestoreBackup: createPreRestoreBackup({ ...core, backups }),
    },
  };
}
