import '../beginning.ts';
import { DEFAULT_PORT } from '../../platform/defaultPort.ts';
import { defaultWorkFolder, hasHeartbeat } from '../../runner/heartbeat.ts';

/**
 * The health check of the image: ends with 0 if the process of this container responds. Whether it can serve
 * requests is `/readyz`, which a proxy asks. A runner has no port; it keeps a heartbeat in its work folder.
 */
async function responds({ env }: NodeJS.Process): Promise<boolean> {
  if (env.HOLDFAST_ROLE?.trim() === 'runner')
    return hasHeartbeat(env.HOLDFAST_RUNNER_FOLDER ?? defaultWorkFolder());
  const response = await fetch(`http://127.0.0.1:${env.HOLDFAST_PORT ?? DEFAULT_PORT}/livez`);
  return response.ok;
}

const isHealthy = await responds(process).catch(() => false);
// Not when the connection that was kept open ends.
process.exit(isHealthy ? 0 : 1);
