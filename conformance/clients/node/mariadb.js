// MariaDB's own connector, whose batches go by COM_STMT_BULK_EXECUTE where they may.
'use strict';
const mariadb = require('mariadb');

module.exports = (shown, argument) => {
  function result(outcome) {
    // Several results come as a list; rows are a list that knows its columns.
    if (Array.isArray(outcome) && !outcome.meta) return outcome.forEach(result);
    if (!Array.isArray(outcome)) {
      console.log(outcome ? `  affected=${outcome.affectedRows} insert_id=${outcome.insertId} warnings=${outcome.warningStatus}` : `  ${outcome}`);
      return;
    }
    for (const column of outcome.meta) {
      console.log(`  column ${column.name()} type=${column.type} flags=${column.flags} length=${column.columnLength} ` +
        `decimals=${column.scale} charset=${column.collation && column.collation.index} ` +
        `table=${column.table()}/${column.orgTable()} org=${column.orgName()} db=${column.db()}`);
    }
    for (const row of outcome) console.log('  row ' + row.map(value).join(' | '));
  }

  function value(one) {
    return typeof one === 'bigint' ? `bigint ${one}` : shown(one);
  }

  return class {
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
      this.connection = await mariadb.createConnection({
        host: this.host, port: this.port, user: options.user || this.user, password: options.password || this.password,
        database: options.database || undefined, ssl: options.tls === 'on' ? { rejectUnauthorized: false } : false,
        multipleStatements: true, rowsAsArray: true, dateStrings: true, permitLocalInfile: options.infile !== 'off', allowPublicKeyRetrieval: true,
        // Else it asks for another one, unless the server's first answer says which character set it has (docs/compatibility.md).
        collation: 'UTF8MB4_UNICODE_CI', connectTimeout: 60000, compress: 'compress' in options,
        // Columns with JSON are not told from others (docs/features/prepared-statements.md).
        autoJsonMap: false,
      });
      this.connection.on('error', () => {});
    }

    async step(verb, rest) {
      try {
        return await this.go(verb, rest);
      } catch (error) {
        // With the number of the connection, a text and its parameters, which are no matter for a comparison.
        throw Object.assign(new Error(error.sqlMessage || error.message), { code: error.code, errno: error.errno, sqlState: error.sqlState });
      }
    }

    async go(verb, rest) {
      const parts = rest.split(' :: ');
      if (verb === 'connect') {
        return this.connect(Object.fromEntries(rest.split(' ').filter(Boolean).map((part) => part.split('='))));
      }
      if (!this.connection) throw new Error('not connected');
      switch (verb) {
        case 'query':
        case 'script':
          return result(await this.connection.query(rest));
        case 'batch':
          return result(await this.connection.batch(parts[0], parts.slice(1).map((row) => row.split(' | ').map(argument))));
        case 'prepare':
          this.prepared[parts[0]] = await this.connection.prepare(parts[1]);
          return;
        case 'execute': {
          if (!this.prepared[parts[0]]) throw new Error('not prepared');
          return result(await this.prepared[parts[0]].execute(parts.slice(1).map(argument)));
        }
        case 'close':
          if (!this.prepared[rest]) throw new Error('not prepared');
          this.prepared[rest].close();
          delete this.prepared[rest];
          return;
        case 'ping': return this.connection.ping();
        case 'begin': return this.connection.beginTransaction();
        case 'commit': return this.connection.commit();
        case 'rollback': return this.connection.rollback();
        case 'autocommit': return result(await this.connection.query('SET autocommit = ' + (rest === 'on' ? 1 : 0)));
        case 'use': return result(await this.connection.query('USE `' + rest + '`'));
        case 'reset': return this.connection.reset();
        case 'change': return this.connection.changeUser({ user: parts[0], password: parts[1], database: parts[2] });
        default: return 'no such call';
      }
    }
  };
};
