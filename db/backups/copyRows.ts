import type { Connection } from 'pg';
import type { RowSink } from '../../platform/archive/index.ts';
import type { BackupConnection } from './backupConnection.ts';
import { ROW_BYTES } from './rowSocket.ts';

/** Codes of messages of the server (PostgreSQL manual, "Message Formats"). */
const CopyCode = { data: 0x64, outResponse: 0x48 } as const;
/** ParameterStatus, NoticeResponse and NotificationResponse, which may come at any time. */
const INTERSPERSED: ReadonlySet<number> = new Set([0x53, 0x4e, 0x41]);

/** Code of the message and its length, which includes itself. */
const HEAD_BYTES = 1 + 4;

/**
 * Parses what the server sends for a COPY … TO STDOUT: one message a row. `parse` passes the rows
 * to the sink; it returns the bytes from the first message on that does not belong to the rows.
 */
export function createCopyParser(sink: Pick<RowSink, 'write' | 'endRow'>) {
  const head = Buffer.alloc(HEAD_BYTES);
  let [headBytes, code, remaining] = [0, 0, 0];

  return {
    parse(bytes: Buffer): Buffer | undefined {
      for (let at = 0; at < bytes.length;) {
        if (headBytes < HEAD_BYTES) {
          const copied = bytes.copy(head, headBytes, at, at + HEAD_BYTES - headBytes);
          [headBytes, at] = [headBytes + copied, at + copied];
          if (headBytes < HEAD_BYTES) return undefined;
          code = head.readUInt8(0);
          remaining = head.readUInt32BE(1) - 4;
          if (code !== CopyCode.data && code !== CopyCode.outResponse && !INTERSPERSED.has(code))
            return Buffer.concat([head, bytes.subarray(at)]);
        }
        const end = Math.min(at + remaining, bytes.length);
        if (code === CopyCode.data) sink.write(bytes, at, end);
        remaining -= end - at;
        at = end;
        if (remaining > 0) return undefined;
        if (code === CopyCode.data) sink.endRow();
        headBytes = 0;
      }
      return undefined;
    },
  };
}

type DataListener = (bytes: Buffer) => void;

/**
 * Passes the rows of a COPY … TO STDOUT to a sink. It reads the socket itself: a stream with an
 * object for each row takes several times as long as the rest of a backup. Errors: those of the
 * database and of the sink; after one of the sink the connection can only be closed.
 */
export function copyRows(connection: BackupConnection, sql: string, sink: RowSink): Promise<void> {
  return new Promise((resolve, reject) => {
    const query = {
      submit(pgConnection: Connection) {
        const { stream } = pgConnection;
        const parser = createCopyParser(sink);
        // The only listener is the parser of the client, which gets what follows the rows.
        const [clientListener] = stream.listeners('data') as [DataListener];
        const listener: DataListener = (bytes) => {
          const rest = parser.parse(bytes);
          if (rest) {
            stream.off(ROW_BYTES, listener).off('data', listener).on('data', clientListener);
            clientListener(rest);
            return;
          }
          const accepted = sink.accepted();
          if (!accepted) return;
          stream.pause();
          accepted.then(() => stream.resume(), reject);
        };
        // With TLS another stream decrypts, which has no `ROW_BYTES`.
        stream.off('data', clientListener).on('data', listener).on(ROW_BYTES, listener);
        pgConnection.query(sql);
      },
      handleError: reject,
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => resolve(),
    };
    connection.query(query);
  });
}
