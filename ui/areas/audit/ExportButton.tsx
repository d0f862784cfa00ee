import { Button } from '@mantine/core';
import { formatBytes } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import type { useAuditExport } from './useAuditExport.ts';

type Props = Pick<ReturnType<typeof useAuditExport>, 'bytes' | 'download'>;

/** Saves what the list has, with its filters, as a file. */
export function ExportButton({ bytes, download }: Props) {
  const isRunning = bytes !== undefined;
  return (
    <Button
      variant="default"
      leftSection={<Icon name="download" size={14} />}
      disabled={isRunning}
      onClick={download}
    >
      {isRunning ? `${formatBytes(bytes)} read` : 'Export'}
    </Button>
  );
}
