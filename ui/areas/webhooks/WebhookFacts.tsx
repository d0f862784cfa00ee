import { useState } from 'react';
import { Actor } from '../../parts/Actor.tsx';
import { serverNow } from '../../parts/clock.ts';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { labelOf } from '../../parts/names.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { WebhookDetail } from './webhookQueries.ts';
import { retriesText } from './webhookText.ts';
import classes from './Webhooks.module.css';

/** Where a webhook sends what, and who has created it. */
export function WebhookFacts({ webhook }: { webhook: WebhookDetail }) {
  const { included: names, tenantId, retryPolicy, previousSecretUntil } = webhook;
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          {
            label: 'Endpoint',
            value: (
              <span className={classes.url}>
                <Exact text={webhook.endpointUrl} />
              </span>
            ),
          },
          {
            label: 'Events of',
            value:
              tenantId === 'platform'
                ? 'all tenants'
                : `the tenant ${labelOf(names, tenantId, 'tenants') ?? tenantId}`,
          },
          { label: 'Secret', value: <Secret until={previousSecretUntil} /> },
          { label: 'Retries', value: retriesText(retryPolicy) },
          { label: 'Created', value: <Time value={webhook.createdAt} /> },
          { label: 'Created by', value: <Actor id={webhook.createdBy} names={names} /> },
          { label: 'Changed', value: <Time value={webhook.updatedAt} /> },
        ]}
      />
    </Section>
  );
}

/** Which secrets sign. */
function Secret({ until }: { until: string | null }) {
  const [now] = useState(serverNow);
  if (until === null || Date.parse(until) <= now) return <>Not shown</>;
  return (
    <>
      Not shown. The former one signs, too, until <Time value={until} />
    </>
  );
}
