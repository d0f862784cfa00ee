import type { JobType } from '../../domain/jobType.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';
import { coreEcho } from './coreEcho.ts';
import { coreSleep } from './coreSleep.ts';
import { httpRequest } from './httpRequest.ts';

/** Every job type. A new one is a file beside these and a line here. */
export const allJobTypes = (deps: { http: GuardedHttp }): JobType[] => [coreEcho, coreSleep, httpRequest(deps.http)];
