import { Anchor, Code } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useSession } from '../../app/session/useSession.ts';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Icon, type IconName } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { Block, Row, Rows } from './Block.tsx';
import { emptyQuery } from './queries.ts';

type Step = { key: string; icon: IconName; permission: string; text: ReactNode; detail: ReactNode };

function Command({ text }: { text: string }) {
  return (
    <>
      <Code>{text}</Code> <CopyButton value={text} label="Copy the command" />
    </>
  );
}

/** What can be done in an empty installation, and the permission that it needs. */
const STEPS: readonly Step[] = [
  {
    key: 'demo',
    icon: 'database',
    permission: 'inventory:write',
    text: (
      <>
        Load an example of 40 sites: <Command text="npm run demo-data" />
      </>
    ),
    detail: 'In the folder of the installation. It takes a minute or two.',
  },
  {
    key: 'site',
    icon: 'server',
    permission: 'inventory:write',
    text: <>Create your first site, or import what you have</>,
    detail: (
      <>
        <Anchor component={PageLink} to="/inventory/sites/new">
          New site
        </Anchor>
        ,{' '}
        <Anchor component={PageLink} to="/inventory/imports/new">
          import a file
        </Anchor>
      </>
    ),
  },
  {
    key: 'people',
    icon: 'users',
    permission: 'auth:write',
    text: <>Let people sign in: connect an identity provider, or create accounts</>,
    detail: (
      <>
        <Anchor component={PageLink} to="/access/providers/new">
          New identity provider
        </Anchor>
        ,{' '}
        <Anchor component={PageLink} to="/access/users/new">
          new user
        </Anchor>
      </>
    ),
  },
  {
    key: 'backup',
    icon: 'shield',
    permission: 'schedule:write',
    text: <>Schedule a backup of everything</>,
    detail: (
      <Anchor
        renderRoot={(props) => (
          <PageLink {...props} to="/schedules/new" search={{ jobType: 'backup.create' }} />
        )}
      >
        New schedule
      </Anchor>
    ),
  },
];

/** What to do first, as long as there is no inventory. */
export function FirstSteps() {
  const { can } = useSession();
  const { data: isEmpty } = useQuery({ ...emptyQuery, enabled: can('inventory:read') });
  const steps = STEPS.filter(({ permission }) => can(permission));
  if (isEmpty !== true || steps.length === 0) return null;
  return (
    <Block title="First steps" note="The inventory is empty.">
      <Rows label="First steps">
        {steps.map(({ key, icon, text, detail }) => (
          <Row key={key} icon={<Icon name={icon} size={15} />} detail={detail}>
            {text}
          </Row>
        ))}
      </Rows>
    </Block>
  );
}
