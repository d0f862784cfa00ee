import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'ldapts';
import { freePort } from '../../dev/freePort.ts';
import { selfSigned } from './certificate.ts';
import { eventually } from './eventually.ts';
import { pathOf } from './programs.ts';

const BASE = 'dc=example,dc=net';
export const MANAGER = { dn: `cn=manager,${BASE}`, password: 'manager-secret' };

const configText = (folder: string) => `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile ${folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCertificateFile ${folder}/cert.pem
TLSCertificateKeyFile ${folder}/key.pem
TLSCACertificateFile ${folder}/cert.pem
database mdb
suffix "${BASE}"
rootdn "${MANAGER.dn}"
rootpw ${MANAGER.password}
directory ${folder}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by users read by anonymous auth
`;

/** Users of the directory; the password of each is `<uid>-secret`. */
const USERS = ['ada', 'bob', 'eve*', 'o(pen)'];
const GROUPS: Record<string, string[]> = {
  'net-admins': ['ada'],
  'operators, east': ['ada', 'bob'],
  empty: [],
};

const userDn = (uid: string) =>
  `uid=${uid.replace(/[(),*]/g, (c) => `\\${c.charCodeAt(0).toString(16)}`)},ou=people,${BASE}`;

/** A real OpenLDAP server with a few users and groups, on loopback, with TLS. */
export async function startSlapd() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-slapd-'));
  const { key, cert } = await selfSigned('localhost');
  await mkdir(path.join(folder, 'data'));
  await Promise.all([
    writeFile(path.join(folder, 'slapd.conf'), configText(folder)),
    writeFile(path.join(folder, 'cert.pem'), cert),
    writeFile(path.join(folder, 'key.pem'), key, { mode: 0o600 }),
  ]);
  const [plain, secure] = [await freePort(0), await freePort(0)];
  const urls = { plain: `ldap://localhost:${plain}`, secure: `ldaps://localhost:${secure}` };
  const server = spawn(
    pathOf('slapd'),
    [
      '-d',
      '0',
      '-f',
      path.join(folder, 'slapd.conf'),
      '-h',
      `ldap://127.0.0.1:${plain} ldaps://127.0.0.1:${secure}`,
    ],
    { stdio: 'ignore' },
  );
  const exited = new Promise((resolve) => server.once('exit', resolve));
  const asManager = async (work: (client: Client) => Promise<unknown>) => {
    const client = new Client({ url: `ldap://127.0.0.1:${plain}` });
    await client.bind(MANAGER.dn, MANAGER.password);
    await work(client).finally(() => client.unbind());
  };
  await eventually(
    () =>
      asManager(() => Promise.resolve()).then(
        () => true,
        () => false,
      ),
    Boolean,
  );
  await asManager(async (client) => {
    await client.add(BASE, {
      objectClass: ['dcObject', 'organization'],
      o: 'example',
      dc: 'example',
    });
    for (const ou of ['people', 'groups', 'projects'])
      await client.add(`ou=${ou},${BASE}`, { objectClass: 'organizationalUnit', ou });
    for (const uid of USERS) {
      await client.add(userDn(uid), {
        objectClass: 'inetOrgPerson',
        uid,
        cn: `${uid} Person`,
        sn: 'Person',
        mail: `${uid.replace(/\W/g, '')}@example.net`,
        userPassword: `${uid}-secret`,
      });
    }
    for (const [cn, members] of Object.entries(GROUPS)) {
      await client.add(`cn=${cn.replace(',', '\\,')},ou=groups,${BASE}`, {
        objectClass: 'groupOfNames',
        cn,
        member: members.length > 0 ? members.map(userDn) : [MANAGER.dn],
      });
    }
    await client.add(`ou=groups+l=x,${BASE}`, {
      objectClass: 'organizationalUnit',
      ou: 'groups',
      l: 'x',
    });
    await client.add(`cn=operators\\, east,ou=groups+l=x,${BASE}`, {
      objectClass: 'groupOfNames',
      cn: 'operators, east',
      member: [userDn('eve*')],
    });
    // Those who may create groups of projects choose their names.
    await client.add(`cn=net-admins,ou=projects,${BASE}`, {
      objectClass: 'groupOfNames',
      cn: 'net-admins',
      member: [userDn('bob')],
    });
  });
  return {
    urls,
    cert,
    asManager,
    userDn,
    groupDn: (cn: string) => `cn=${cn.replace(',', '\\,')},ou=groups,${BASE}`,
    /** A valid configuration of an LDAP provider. */
    config: {
      url: urls.secure,
      caCertificate: cert,
      allowPrivateNetwork: true,
      bindDn: MANAGER.dn,
      bindPassword: MANAGER.password,
      userBaseDn: `ou=people,${BASE}`,
      groupBaseDn: `ou=groups,${BASE}`,
    },
    async stop() {
      server.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
