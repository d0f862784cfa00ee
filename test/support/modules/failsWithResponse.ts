import { JobFailure, jobType, Type } from 'holdfast/job-type';

/** Fails with what a server has answered, which repeats a secret and has a credential of its own. */
export const failsWithResponse = jobType({
  apiVersion: 1,
  name: 'test.fails-with-response',
  summary: 'Fails with a response',
  access: 'open',
  payload: Type.Object({ key: Type.String({ 'x-holdfast-secret': true }) }),
  retry: { maxAttempts: 1 },
  run({ key }, { progress }) {
    progress(1, `asks https://bob:hidden-7c@host/`);
    const body = `{"repeated": "${key}", "password": "hidden-7c", "rest": "${'x'.repeat(10_000)}${key}"}`;
    return Promise.reject(
      new JobFailure('refused', 'The server refused', {
        response: { status: 422, contentType: `text/${key}`, body, truncated: false },
      }),
    );
  },
});
