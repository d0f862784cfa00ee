import { Button } from '@mantine/core';
import { useId, useRef, useState, type DragEvent } from 'react';
import { formatBytes, formatNumberOf } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icons.tsx';
import type { ChosenFile } from './readFile.ts';
import classes from './Imports.module.css';

type Props = {
  chosen: ChosenFile | undefined;
  onChoose: (file: File) => void;
  disabled: boolean;
  error: string | undefined;
};

const ACCEPTED = '.csv,.ndjson,.jsonl,.json,text/csv,application/x-ndjson';

/** True while something that may be a file is dragged over the field. */
function useDrop(onChoose: (file: File) => void, disabled: boolean) {
  const [isOver, setOver] = useState(false);
  return {
    isOver,
    handlers: {
      onDragOver: (event: DragEvent) => {
        event.preventDefault();
        setOver(!disabled);
      },
      onDragLeave: () => setOver(false),
      onDrop: (event: DragEvent) => {
        event.preventDefault();
        setOver(false);
        const file = event.dataTransfer.files.item(0);
        if (file && !disabled) onChoose(file);
      },
    },
  };
}

/** The file: chosen in a dialog of the browser, or dropped here. */
export function FileField({ chosen, onChoose, disabled, error }: Props) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { isOver, handlers } = useDrop(onChoose, disabled);
  return (
    <div
      className={classes.drop}
      data-over={isOver || undefined}
      data-invalid={error !== undefined || undefined}
      role="group"
      aria-label="File"
      {...handlers}
    >
      <input
        ref={input}
        id={id}
        className={classes.input}
        type="file"
        accept={ACCEPTED}
        aria-label="Choose a file"
        tabIndex={-1}
        disabled={disabled}
        onChange={({ currentTarget }) => {
          const file = currentTarget.files?.item(0);
          if (file) onChoose(file);
          // The same file can be chosen again after it was changed.
          currentTarget.value = '';
        }}
      />
      <Icon name="upload" size={20} />
      <Button variant="default" disabled={disabled} onClick={() => input.current?.click()}>
        {chosen ? 'Choose another file' : 'Choose a file'}
      </Button>
      {chosen ? (
        <span className={classes.fileName} role="status">
          <strong>{chosen.file.name}</strong> · {formatBytes(chosen.file.size)} ·{' '}
          {chosen.format === 'csv' ? 'CSV' : 'NDJSON'} · about {formatNumberOf(chosen.rows, 'row')}
        </span>
      ) : (
        <span className={classes.muted}>or drop one here: CSV or NDJSON, up to 32 MiB</span>
      )}
      {error !== undefined && (
        <span className={classes.error} role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
