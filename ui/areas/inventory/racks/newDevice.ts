import type { InventoryRecord } from '../inventoryQueries.ts';
import type { Face } from './rackModel.ts';

/** What the form of a new device starts with, for a free unit of a rack. */
export const newDeviceSearch = (
  { id, siteId, locationId }: InventoryRecord,
  { low, face }: { low: number; face: Face },
): Record<string, string> => ({
  ...(typeof siteId === 'string' && { siteId }),
  ...(typeof locationId === 'string' && { locationId }),
  rackId: id,
  position: String(low),
  face,
});
