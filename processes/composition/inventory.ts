import { createAddressSpace } from '../../services/inventory/addressSpace.ts';
import { createApprovedChanges } from '../../services/inventory/approvedChanges.ts';
import { createInventoryBatches } from '../../services/inventory/batches.ts';
import { createEquipment } from '../../services/inventory/equipment.ts';
import { createInventoryExports } from '../../services/inventory/exports.ts';
import { createInventoryImports } from '../../services/inventory/imports.ts';
import { createPlanner } from '../../services/inventory/planner.ts';
import { createInventoryRecords } from '../../services/inventory/records.ts';
import { createInventoryQuestions } from '../../services/inventory/questions.ts';
import { createInventoryWrites } from '../../services/inventory/writes.ts';
import type { Core } from './core.ts';

/** Builds the inventory. Every write goes through one planner. */
export function composeInventory(core: Core) {
  const records = createInventoryRecords(core);
  const planner = createPlanner(core);
  const writes = createInventoryWrites({ ...core, planner });
  const { questionTimeoutMs } = core.config;
  const questions = createInventoryQuestions({ ...core, planner, questionTimeoutMs });
  return {
    records,
    writes,
    questions,
    approvedChanges: createApprovedChanges({ ...core, writes }),
    imports: createInventoryImports({ ...core, writes, questions }),
    exports: createInventoryExports({ records }),
    batches: createInventoryBatches({ ...core, writes }),
    equipment: createEquipment(core),
    addressSpace: createAddressSpace({ ...core, records, writes }),
  };
}
