import viewClasses from '../../parts/list/Views.module.css';
import { PageLink } from '../../parts/PageLink.tsx';

const VIEWS = [
  { name: 'webhooks', label: 'Webhooks', to: '/webhooks' },
  { name: 'deliveries', label: 'Deliveries', to: '/deliveries' },
] as const;

type Props = { current: (typeof VIEWS)[number]['name'] };

/** Leads from the webhooks to the deliveries of all of them, and back. */
export function Views({ current }: Props) {
  return (
    <nav className={viewClasses.views} aria-label="Webhooks and deliveries">
      {VIEWS.map(({ name, label, to }) => (
        <PageLink key={name} to={to} className={viewClasses.view} current={name === current}>
          {label}
        </PageLink>
      ))}
      <PageLink to="/event-types" className={viewClasses.view}>
        Event types
      </PageLink>
    </nav>
  );
}
