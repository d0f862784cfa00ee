export {
  ArchiveError,
  type ArchivedTable,
  type ArchiveHeader,
  type ArchiveManifest,
} from './format.ts';
export { readArchive, readHeader, type ArchivePart, type Unseal } from './reader.ts';
export { createArchiveWriter } from './writer.ts';
