import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readConfig } from '../../platform/config.ts';
import { createLog } from '../../platform/log.ts';
import { APP_VERSION as version } from '../../platform/version.ts';
import { commandLine, readArguments, runProgram } from './program.ts';

/** The document of this version. Only routes are built: no server is started or reached. */
async function openApiDocument(): Promise<string> {
  // Loaded late: wrong arguments are answered immediately.
  const { allRoutes } = await import('../../api/app.ts');
  const { buildOpenApi } = await import('../../api/http/openapi.ts');
  const { compose } = await import('../composition/index.ts');
  const config = readConfig({ DATABASE_URL: 'postgres://unused' });
  const routes = allRoutes(compose(config, createLog('silent')), version);
  // The pages of the API reference are not part of the API.
  const documented = routes.filter((route) => !route.path.startsWith('/api/docs'));
  return JSON.stringify(buildOpenApi(documented, version));
}

const USAGE = `${commandLine('openapi', '[<file>]')}
  Writes the OpenAPI document, as GET /api/openapi.json returns it, into a file, or to standard output.`;

async function main(args: readonly string[]): Promise<number> {
  const [file] = readArguments(args, { words: 1 }).words;
  if (file === undefined) process.stdout.write(await openApiDocument());
  else {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, await openApiDocument());
  }
  return 0;
}

await runProgram(() => USAGE, main);
