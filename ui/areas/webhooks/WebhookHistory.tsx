import { useQuery } from '@tanstack/react-query';
import { HistorySection } from '../../parts/history/HistorySection.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { webhookHistoryQuery } from './webhookQueries.ts';
import { historyText } from './webhookText.ts';

/** Who has changed a webhook, as the audit log says. */
export function WebhookHistory({ webhookId }: { webhookId: string }) {
  const enabled = usePermissions().canAnywhere('audit:read');
  const { data, error, refetch } = useQuery({ ...webhookHistoryQuery(webhookId), enabled });
  return (
    <HistorySection
      title="History"
      what="Who has changed it needs"
      subjectId={webhookId}
      data={data}
      error={error}
      retry={() => void refetch()}
      text={historyText}
    />
  );
}
