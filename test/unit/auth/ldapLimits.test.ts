import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, test } from '@jest/globals';
import { createProviderOutbound } from '../../../platform/providerOutbound.ts';
import { createLdap } from '../../../services/auth/providers/kinds/ldap.ts';
import type { LdapConfig } from '../../../services/auth/providers/kinds/ldapConfig.ts';
import { selfSigned } from '../../support/certificate.ts';

/** The header of an LDAP message of 2 GiB (BER, definite length). */
const HUGE_MESSAGE = Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]);

test('a directory that sends without end is disconnected', async () => {
  const { key, cert } = await selfSigned('localhost');
  const flood = (socket: TLSSocket) => {
    const chunk = Buffer.alloc(65_536);
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more).on('error', () => undefined);
    socket.once('data', () => {
      socket.write(HUGE_MESSAGE);
      more();
    });
  };
  const server = createServer({ key, cert }, flood).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const outbound = createProviderOutbound([]);
  const config = {
    url: `ldaps://localhost:${(server.address() as AddressInfo).port}`,
    caCertificate: cert,
    allowPrivateNetwork: true,
    timeoutMs: 30_000,
    bindDn: 'cn=holdfast',
    bindPassword: 'secret',
  } as LdapConfig;
  await expect(createLdap(outbound).authenticate(config, 'ada', 'pw')).rejects.toThrow(
    /more than 2097152 bytes/,
  );
  server.close();
  await outbound.close();
});
