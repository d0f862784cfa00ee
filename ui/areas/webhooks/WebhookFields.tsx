import { NumberInput, TextInput } from '@mantine/core';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import type { FieldError } from '../../parts/problems.ts';
import { EventTypePicker } from './EventTypePicker.tsx';
import { LONGEST_WAIT_SECONDS, requestOf, type WebhookDraft } from './draft.ts';
import { MAX_ATTEMPTS, retriesText } from './webhookText.ts';
import classes from './Webhooks.module.css';
import { typedNumber } from '../../parts/form/typedNumber.ts';

/** Pointers of the fields that show what is wrong with them. */
export const DRAFT_FIELDS = ['/endpointUrl', '/description', '/eventTypes', '/retryPolicy'];

type Props = {
  draft: WebhookDraft;
  onChange: (change: Partial<WebhookDraft>) => void;
  errors: readonly FieldError[];
};

/** Where a webhook sends what, and how often it tries. */
export function WebhookFields({ draft, onChange, errors }: Props) {
  return (
    <>
      <TextInput
        label="Endpoint"
        description="http or https. Its address must be public, or permitted by the operator. Path and query may have credentials: only you see them unmasked."
        placeholder="https://hooks.example.net/holdfast"
        required
        type="text"
        inputMode="url"
        maxLength={2_048}
        autoComplete="off"
        spellCheck={false}
        value={draft.endpointUrl}
        onChange={(event) => onChange({ endpointUrl: event.currentTarget.value })}
        error={errorAt(errors, '/endpointUrl')}
      />
      <TextInput
        label="Description"
        description="Shown in lists. Empty: the host of the endpoint"
        maxLength={255}
        value={draft.description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={errorAt(errors, '/description')}
      />
      <EventTypePicker
        value={draft.eventTypes}
        onChange={(eventTypes) => onChange({ eventTypes })}
        error={errors.find(({ pointer }) => pointer.startsWith('/eventTypes'))?.detail}
      />
      <RetryFields draft={draft} onChange={onChange} errors={errors} />
    </>
  );
}

function RetryFields({ draft, onChange, errors }: Props) {
  const { retryPolicy } = requestOf(draft);
  return (
    <fieldset className={classes.fieldset}>
      <legend>Retries</legend>
      <div className={classes.columns}>
        <NumberInput
          label="Attempts"
          min={1}
          max={MAX_ATTEMPTS}
          clampBehavior="none"
          decimalScale={0}
          placeholder={`${MAX_ATTEMPTS}`}
          value={draft.maxAttempts}
          onChange={(next) => onChange({ maxAttempts: typedNumber(next) })}
          error={errorAt(errors, '/retryPolicy/maxAttempts')}
        />
        <NumberInput
          label="Longest wait"
          min={0.05}
          max={LONGEST_WAIT_SECONDS}
          clampBehavior="none"
          decimalScale={2}
          suffix=" s"
          placeholder={`${LONGEST_WAIT_SECONDS} s`}
          value={draft.maxIntervalSeconds}
          onChange={(next) => onChange({ maxIntervalSeconds: typedNumber(next) })}
          error={errorAt(errors, '/retryPolicy/maxIntervalSeconds')}
        />
      </div>
      <p className={classes.muted} aria-live="polite">
        {retriesText(retryPolicy)}.
      </p>
    </fieldset>
  );
}
