/** What has come of an attempt. */
export type Outcome = { httpStatus: number | null; errorCode: string | null };

type Attempt = { httpStatus: number | null; error: { code: string } | null };

export const outcomeOf = ({ httpStatus, error }: Attempt): Outcome => ({
  httpStatus,
  errorCode: error?.code ?? null,
});

/** True if the endpoint has accepted the message. */
export const isAccepted = ({ httpStatus, errorCode }: Outcome): boolean =>
  httpStatus !== null && errorCode === null;

/** The outcome as text, for copies. */
export const answerText = (outcome: Outcome | null | undefined): string =>
  outcome?.httpStatus?.toString() ?? outcome?.errorCode ?? '';

/** Why a delivery has ended without success, in words; undefined for the code of an answer or error. */
export const REASONS: Readonly<Record<string, string>> = {
  webhook_disabled: 'the webhook was disabled',
  webhook_deleted: 'the webhook was deleted',
  webhook_failing: 'the webhook was disabled, since it failed for five days',
  webhook_endpoint_removed: 'the webhook was disabled, since its endpoint answered 410',
};
