// Runs scenarios through mysql2, or MariaDB's own connector, and prints all that the client can see.
//
//   node client.js mysql2|mariadb
//
// Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const mysql = require('mysql2/promise');

// Servers number the packets of compressed answers by frames, and this client says so for each; Millrace does not.
const complain = console.error;
let packed = false;
console.error = (...words) => (packed && String(words[0]).includes('got packets out of order')) || complain(...words);

function shown(value) {
  if (Buffer.isBuffer(value)) return long('buffer', value, value.toString('hex'));
  if (typeof value === 'string') return long('string', Buffer.from(value), JSON.stringify(value));
  if (value instanceof Date) return 'date ' + (Number.isNaN(value.getTime()) ? 'invalid' : value.toISOString());
  return typeof value + ' ' + JSON.stringify(value);
}

function long(kind, bytes, words) {
  if (bytes.length <= 200) return kind + ' ' + words;
  return `${kind} len=${bytes.length} sha256=${crypto.createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`;
}

function argument(text) {
  text = text.trim();
  const rest = text.slice(2);
  switch (text[0]) {
    case 'i': return Number.isSafeInteger(Number(rest)) ? Number(rest) : rest;
    case 'd': return Number(rest);
    case 'b': return Buffer.from(rest, 'hex');
    case 'n': return null;
    case 'L': return 'x'.repeat(Number(rest));
    default: return rest;
  }
}

function result(rows, fields) {
  if (fields) {
    for (const field of fields) {
      console.log(`  column ${field.name} type=${field.columnType} flags=${field.flags} length=${field.columnLength} ` +
        `decimals=${field.decimals} charset=${field.characterSet} table=${field.table}/${field.orgTable} org=${field.orgName} db=${field.schema || field.db}`);
    }
    for (const row of rows) console.log('  row ' + row.map(shown).join(' | '));
  } else {
    console.log(`  affected=${rows.affectedRows} changed=${rows.changedRows} insert_id=${rows.insertId} ` +
      `warnings=${rows.warningStatus} status=${rows.serverStatus} info=${JSON.stringify(rows.info)}`);
  }
}

function results(rows, fields) {
  // Several results come as a list of lists; one of rows as a list with a flat list of fields.
  const several = Array.isArray(rows) && Array.isArray(fields) && fields.some((one) => one === undefined || Array.isArray(one));
  if (several) rows.forEach((one, index) => result(one, fields[index]));
  else result(rows, fields);
}

class Client {
  constructor(host, port, user, password) {
    Object.assign(this, { host, port, user, password, prepared: {} });
  }

  async leave() {
    const connection = this.connection;
    this.connection = undefined;
    this.prepared = {};
    if (connection) await connection.end().catch(() => connection.destroy());
  }

  async connect(options) {
    await this.leave();
    packed = 'compress' in options;
    this.connection = await mysql.createConnection({
      host: this.host, port: this.port, user: options.user || this.user, password: options.password || this.password,
      database: options.database || undefined, ssl: options.tls === 'on' ? { rejectUnauthorized: false } : undefined,
      multipleStatements: true, rowsAsArray: true, supportBigNumbers: true, bigNumberStrings: true, timezone: 'Z',
      charset: 'utf8mb4', connectTimeout: 60000, compress: packed,
    });
    this.connection.connection.on('error', () => {});
  }

  async step(verb, rest) {
    const parts = rest.split(' :: ');
    if (verb === 'connect') {
      return this.connect(Object.fromEntries(rest.split(' ').filter(Boolean).map((part) => part.split('='))));
    }
    if (!this.connection) throw new Error('not connected');
    switch (verb) {
      case 'query':
      case 'script':
        return results(...(await this.connection.query({ sql: rest, infileStreamFactory: (file) => fs.createReadStream(file) })));
      case 'prepare':
        this.prepared[parts[0]] = await this.connection.prepare(parts[1]);
        return;
      case 'execute': {
        if (!this.prepared[parts[0]]) throw new Error('not prepared');
        return results(...(await this.prepared[parts[0]].execute(parts.slice(1).map(argument))));
      }
      case 'batch': {
        // It has one text for all rows of an INSERT, and nothing for other statements.
        if (!/^INSERT .* VALUES \(.*\)$/.test(parts[0])) return 'no such call';
        const rows = parts.slice(1).map((row) => row.split(' | ').map(argument));
        return results(...(await this.connection.query(parts[0].replace(/\([^()]*\)$/, '?'), [rows])));
      }
      case 'close':
        if (!this.prepared[rest]) throw new Error('not prepared');
        await this.prepared[rest].close();
        delete this.prepared[rest];
        return;
      case 'ping': return this.connection.ping();
      case 'begin': return this.connection.beginTransaction();
      case 'commit': return this.connection.commit();
      case 'rollback': return this.connection.rollback();
      case 'autocommit': return results(...(await this.connection.query('SET autocommit = ' + (rest === 'on' ? 1 : 0))));
      case 'use': return results(...(await this.connection.query('USE `' + rest + '`')));
      case 'reset':
        if (!this.connection.reset) return 'no such call';
        return this.connection.reset();
      case 'change': return this.connection.changeUser({ user: parts[0], password: parts[1], database: parts[2] });
      default: return 'no such call';
    }
  }
}

async function play(client, file) {
  console.log('## ' + path.basename(file));
  const lines = fs.readFileSync(file, 'utf8').split('\n').filter((line) => line && !line.startsWith('#'));
  if (!lines[0].startsWith('connect')) lines.unshift('connect database=conf tls=off');
  for (const line of lines) {
    console.log('> ' + line);
    const space = line.indexOf(' ');
    const [verb, rest] = space < 0 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)];
    try {
      const outcome = await client.step(verb, rest);
      console.log(outcome === 'no such call' ? '  this client has no such call' : '  ok');
    } catch (error) {
      console.log(`  error ${error.code} ${error.errno} ${error.sqlState} ${error.sqlMessage || error.message}`);
    }
  }
  await client.leave();
}

async function main() {
  const kind = process.argv[2] === 'mariadb' ? require('./mariadb.js')(shown, argument) : Client;
  for await (const order of readline.createInterface({ input: process.stdin })) {
    const [host, port, user, password, ...file] = order.split(' ');
    await play(new kind(host, Number(port), user, password), file.join(' '));
    console.log('## end');
    complain('## end');
  }
}

// No exit(): it would cut off what stdout has not taken yet.
main().catch((error) => { console.error(error); process.exitCode = 1; });
