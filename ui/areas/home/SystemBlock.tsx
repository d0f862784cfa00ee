import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Health } from '../../app/health.ts';
import { consoleSettings } from '../../app/settings.ts';
import { labelOfField } from '../../parts/format.ts';
import { Block, Row, Rows } from './Block.tsx';
import type { Tone } from './findings.ts';
import { ToneIcon } from './ToneIcon.tsx';
import classes from './links.module.css';

const NAMES: Readonly<Record<string, string>> = {
  postgres: 'PostgreSQL',
  temporal: 'Temporal',
  worker: 'Worker',
};

const STATES: Readonly<Record<string, { tone: Tone; text: string }>> = {
  ready: { tone: 'good', text: 'ready' },
  starting: { tone: 'warning', text: 'starting' },
  unavailable: { tone: 'bad', text: 'not available' },
  schema_outdated: { tone: 'bad', text: 'needs migrations' },
};

/** What is worse without a component. */
const EFFECTS: Readonly<Record<string, string>> = {
  temporal: 'Writes are accepted; jobs and schedules run when it is back.',
  worker: 'Jobs wait until it runs.',
};

/** The parts of the installation, and its version. */
export function SystemBlock({ health }: { health: Health | undefined }) {
  const { data: settings } = useQuery(consoleSettings);
  const components = Object.entries(health?.components ?? {});
  return (
    <Block
      title="System"
      loading={health === undefined}
      note={settings && `Holdfast ${settings.version}`}
      action={
        settings?.temporalUi && (
          <Anchor href={settings.temporalUi.url} target="_blank" rel="noreferrer">
            Temporal Web UI
          </Anchor>
        )
      }
    >
      {health && components.length === 0 && (
        <p className={classes.quiet}>The states of its parts are not known now.</p>
      )}
      {components.length > 0 && (
        <Rows label="System">
          {components.map(([name, state]) => {
            const { tone, text } = STATES[state] ?? { tone: 'warning', text: state };
            return (
              <Row
                key={name}
                icon={<ToneIcon tone={tone} />}
                end={text}
                detail={tone === 'good' ? undefined : EFFECTS[name]}
              >
                <span className={classes.quiet}>{NAMES[name] ?? labelOfField(name)}</span>
              </Row>
            );
          })}
        </Rows>
      )}
    </Block>
  );
}
