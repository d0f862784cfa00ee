import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { allRoutes } from '../../api/app.ts';
import { buildOpenApi } from '../../api/http/openapi.ts';
import { readConfig } from '../../platform/config.ts';
import { createLog } from '../../platform/log.ts';
import { APP_VERSION as version } from '../../platform/version.ts';
import { compose } from '../composition/index.ts';

/** The document of this version. Only routes are built: no server is started or reached. */
function openApiDocument(): string {
  const config = readConfig({ DATABASE_URL: 'postgres://unused' });
  const routes = allRoutes(compose(config, createLog('silent')), version);
  // The pages of the API reference are not part of the API.
  const documented = routes.filter((route) => !route.path.startsWith('/api/docs'));
  return JSON.stringify(buildOpenApi(documented, version));
}

/** `npm run openapi -- <file>`: writes the OpenAPI document, as `GET /api/openapi.json` returns it. */
const [file] = process.argv.slice(2);
if (file === undefined) process.stdout.write(openApiDocument());
else {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, openApiDocument());
}
