export {
  ArchiveError,
  type ArchivedTable,
  type ArchiveHeader,
  type ArchiveManifest,
} from './format.ts';
export { readArchive, readHeader, withHeader, type ArchivePart, type Unseal } from './reader.ts';
export { createArchiveWriter } from './writer.ts';
export { rowsOfLines, type RowSink, type RowSource } from './rowBlocks.ts';
