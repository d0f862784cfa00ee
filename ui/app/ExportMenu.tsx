import { Button, Menu } from '@mantine/core';
import { useEffect } from 'react';
import { formatBytes } from '../parts/format.ts';
import { Icon } from '../parts/icons.tsx';
import { answer } from './api.ts';
import { notifyProblem } from './notify.ts';
import { useFileExport } from './useFileExport.ts';

const FORMATS = [
  { format: 'csv', label: 'CSV, for spreadsheets' },
  { format: 'ndjson', label: 'NDJSON, a record on each line' },
] as const;

type Format = (typeof FORMATS)[number]['format'];

type Props = {
  label: string;
  /** The name of the file without its ending. */
  name: string;
  /** What the file has. */
  note?: string | undefined;
  /** Asks for the stream of the file. */
  read: (format: Format, signal: AbortSignal) => Parameters<typeof answer>[0];
};

/** Saves what a list has as a file, in a format that one chooses. Another click stops it. */
export function ExportMenu({ label, name, note, read }: Props) {
  const { bytes, problem, download, stop } = useFileExport();
  useEffect(() => {
    if (problem !== undefined) notifyProblem(problem);
  }, [problem]);
  const icon = <Icon name="download" size={14} />;
  if (bytes !== undefined)
    return (
      <Button variant="default" leftSection={icon} onClick={stop}>
        {formatBytes(bytes)} read · Stop
      </Button>
    );
  return (
    <Menu position="bottom-end" shadow="md" withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <Button variant="default" leftSection={icon}>
          {label}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {note !== undefined && <Menu.Label>{note}</Menu.Label>}
        {FORMATS.map(({ format, label: text }) => (
          <Menu.Item
            key={format}
            onClick={() => download(`${name}.${format}`, (signal) => answer(read(format, signal)))}
          >
            {text}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
