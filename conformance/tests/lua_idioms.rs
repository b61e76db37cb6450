//! Scripts of the kinds that people published for MySQL Proxy, written anew: each stands between a real
//! server and a client, which is told what the script's readers would expect.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[("scripts_as_people_published_them", idioms)])
}

/// A script, statements with what their client is told, and a line that its log has then.
struct Idiom {
    name: &'static str,
    text: &'static str,
    turns: &'static [(&'static str, &'static str)],
    log: &'static str,
}

const IDIOMS: &[Idiom] = &[
    Idiom {
        name: "results in capitals",
        text: "
            function read_query(packet)
              if string.byte(packet) == proxy.COM_QUERY then
                proxy.queries:append(1, packet, { resultset_is_needed = true })
                return proxy.PROXY_SEND_QUERY
              end
            end
            function read_query_result(inj)
              local rs = inj.resultset
              if not rs.rows then return end
              local fields, rows = {}, {}
              for i = 1, #rs.fields do fields[i] = { name = rs.fields[i].name, type = rs.fields[i].type } end
              for row in rs.rows do
                for i = 1, #fields do
                  if fields[i].type == proxy.MYSQL_TYPE_VAR_STRING and row[i] then row[i] = string.upper(row[i]) end
                end
                rows[#rows + 1] = row
              end
              proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
              return proxy.PROXY_SEND_RESULT
            end",
        turns: &[
            ("SELECT 'ann', NULL, 7", "ANN NULL 7"),
            ("DO 1", ""),
            ("SELECT nosuch", "1054 42S22 Unknown column 'nosuch' in 'SELECT'"),
        ],
        log: "",
    },
    Idiom {
        name: "no DELETE without WHERE",
        text: "
            local tokenizer = require('proxy.tokenizer')
            local BAD = { TK_SQL_DELETE = true, TK_SQL_UPDATE = true }
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              local tokens = proxy.tokenize(packet:sub(2))
              local first, has_where = tokenizer.first_stmt_token(tokens), false
              for i = 1, #tokens do has_where = has_where or tokens[i]['token_name'] == 'TK_SQL_WHERE' end
              if first and BAD[first.token_name] and not has_where then
                proxy.response.type = proxy.MYSQLD_PACKET_ERR
                proxy.response.errmsg = first.text:upper() .. ' needs a WHERE'
                return proxy.PROXY_SEND_RESULT
              end
            end",
        turns: &[
            ("/* sly */ delete FROM idioms.t", "1105 07000 DELETE needs a WHERE"),
            ("UPDATE idioms.t SET a = 1 WHERE a > 100", ""),
            ("SELECT COUNT(*) FROM idioms.t", "2"),
        ],
        log: "",
    },
    Idiom {
        name: "a second try",
        text: "
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              proxy.queries:append(1, packet, { resultset_is_needed = true })
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              if inj.resultset.query_status == proxy.MYSQLD_PACKET_ERR and inj.id < 3 then
                local raw = inj.resultset.raw
                local code = raw:byte(2) + raw:byte(3) * 256
                print('try ' .. inj.id .. ' failed: ' .. code .. ' ' .. raw:sub(5, 9))
                proxy.queries:append(inj.id + 1, (inj.query:gsub('nosuch', '5')), { resultset_is_needed = true })
                return proxy.PROXY_IGNORE_RESULT
              end
            end",
        turns: &[("SELECT nosuch", "5"), ("SELECT 6", "6"), ("SELECT other", "1054 42S22 Unknown column 'other' in 'SELECT'")],
        log: "try 1 failed: 1054 42S22",
    },
    Idiom {
        name: "SHOW statements of its own",
        text: "
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              local what = packet:sub(2):lower():match('^%s*show%s+(%w+)%s*$')
              if what == 'numbers' then
                proxy.queries:append(7, string.char(proxy.COM_QUERY) .. 'SELECT a FROM idioms.t ORDER BY a DESC')
                return proxy.PROXY_SEND_QUERY
              elseif what == 'client' then
                local c = proxy.connection.client
                proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = {
                  fields = { { name = 'user', type = proxy.MYSQL_TYPE_STRING }, { name = 'port', type = proxy.MYSQL_TYPE_LONG } },
                  rows = { { c.username, c.src.port > 0 and 1 or 0 } } } }
                return proxy.PROXY_SEND_RESULT
              end
            end",
        turns: &[("SHOW numbers", "2; 1"), (" show client ", "open 1"), ("SHOW DATABASES LIKE 'idioms'", "idioms")],
        log: "",
    },
    Idiom {
        name: "warnings behind each statement",
        text: "
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              proxy.queries:append(1, packet, { resultset_is_needed = true })
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              if inj.id == 1 then
                if inj.resultset.warning_count > 0 then
                  proxy.queries:append(2, string.char(proxy.COM_QUERY) .. 'SHOW WARNINGS', { resultset_is_needed = true })
                end
                return
              end
              for row in inj.resultset.rows do print('warning', row[1], row[2], row[3]) end
              return proxy.PROXY_IGNORE_RESULT
            end",
        turns: &[("SELECT 1/0", "NULL"), ("SELECT 1/1", "1.0000")],
        log: "warning\tWarning\t1365\tDivision by 0",
    },
    Idiom {
        name: "EXPLAIN in front of each SELECT",
        text: "
            local function explains(sql) return string.char(proxy.COM_QUERY) .. 'EXPLAIN ' .. sql end
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY or not packet:sub(2):lower():find('^select') then return end
              proxy.queries:append(2, packet, { resultset_is_needed = true })
              proxy.queries:prepend(1, explains(packet:sub(2)), { resultset_is_needed = true })
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              if inj.id ~= 1 then return end
              local at
              for i = 1, #inj.resultset.fields do if inj.resultset.fields[i].name == 'type' then at = i end end
              for row in inj.resultset.rows do print('plan', row[at]) end
              return proxy.PROXY_IGNORE_RESULT
            end",
        turns: &[("SELECT b FROM idioms.t WHERE a = 2", "two")],
        log: "plan\tconst",
    },
    Idiom {
        name: "a prompt for Lua",
        text: "
            local env = setmetatable({}, { __index = getfenv(0) })
            local function answer(fields, rows)
              local list = {}
              for i, name in ipairs(fields) do list[i] = { name = name, type = proxy.MYSQL_TYPE_STRING } end
              proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = list, rows = rows } }
              return proxy.PROXY_SEND_RESULT
            end
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              local code = packet:sub(2):match('^LUA (.*)$')
              if not code then return end
              local chunk, words = loadstring('return ' .. code)
              if not chunk then chunk, words = loadstring(code) end
              if not chunk then return answer({ 'error' }, { { words } }) end
              setfenv(chunk, env)
              local got = { pcall(chunk) }
              if type(got[2]) ~= 'table' then return answer({ 'lua' }, { { tostring(got[2]) } }) end
              local rows = {}
              for key, value in pairs(got[2]) do rows[#rows + 1] = { tostring(key), tostring(value) } end
              return answer({ 'key', 'value' }, rows)
            end",
        turns: &[
            ("LUA 1 + 2", "3"),
            ("LUA x = 5", "nil"),
            ("LUA x * 2", "10"),
            ("LUA { 'a' }", "1 a"),
            ("LUA proxy.connection.client.username", "open"),
            ("LUA nil + 1", "[string \"return nil + 1\"]:1: attempt to perform arithmetic on a nil value"),
            ("SELECT 4", "4"),
        ],
        log: "",
    },
    Idiom {
        name: "several statements in one",
        text: "
            local parts, fields, rows
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY or not packet:find('||', 1, true) then return end
              parts, fields, rows = 0, nil, {}
              for sql in (packet:sub(2) .. '||'):gmatch('%s*(.-)%s*||') do
                parts = parts + 1
                proxy.queries:append(parts, string.char(proxy.COM_QUERY) .. sql, { resultset_is_needed = true })
              end
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              local rs = inj.resultset
              if rs.query_status == proxy.MYSQLD_PACKET_ERR then proxy.queries:reset() return end
              if rs.rows then
                fields = fields or { { name = rs.fields[1].name, type = rs.fields[1].type } }
                for row in rs.rows do table.insert(rows, row) end
              end
              if inj.id < parts then return proxy.PROXY_IGNORE_RESULT end
              proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
              return proxy.PROXY_SEND_RESULT
            end",
        turns: &[
            ("SELECT 1 || SET @a = 2 || SELECT @a || SELECT 3", "1; 2; 3"),
            ("SELECT 1 || SELECT nosuch || SELECT 3", "1054 42S22 Unknown column 'nosuch' in 'SELECT'"),
            ("SELECT 9", "9"),
        ],
        log: "",
    },
    Idiom {
        name: "a ping first",
        text: "
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              proxy.queries:append(100, string.char(proxy.COM_PING), { resultset_is_needed = true })
              proxy.queries:append(1, packet, { resultset_is_needed = true })
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              if inj.id ~= 100 then return end
              assert(inj.query == string.char(proxy.COM_PING))
              print('ping', inj.resultset.query_status, inj.resultset.raw:byte(1))
              return proxy.PROXY_IGNORE_RESULT
            end",
        turns: &[("SELECT 'behind'", "behind"), ("DO 0", "")],
        log: "ping\t0\t0",
    },
    Idiom {
        name: "times in classes",
        text: "
            local buckets = {}
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              if packet:sub(2) == 'SHOW HISTOGRAM' then
                local total, rows = 0, {}
                for _, count in pairs(buckets) do total = total + count end
                rows[1] = { 'statements', total }
                proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'what' }, { name = 'count', type = proxy.MYSQL_TYPE_LONGLONG } }, rows = rows } }
                return proxy.PROXY_SEND_RESULT
              end
              proxy.queries:append(1, packet)
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              local class = math.floor(math.log(inj.response_time + 1) / math.log(10))
              assert(inj.query_time <= inj.response_time and class >= 0)
              buckets[class] = (buckets[class] or 0) + 1
            end",
        turns: &[("SELECT 1", "1"), ("DO 1", ""), ("SELECT SLEEP(0.02)", "0"), ("SHOW HISTOGRAM", "statements 3")],
        log: "",
    },
    Idiom {
        name: "a limit for everybody",
        text: "
            local tokenizer = require('proxy.tokenizer')
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              local tokens, limited, reads = proxy.tokenize(packet:sub(2)), false, false
              for i, token in ipairs(tokens) do
                if token.token_name == 'TK_SQL_LIMIT' then limited = true end
                if token.token_name == 'TK_SQL_FROM' then reads = true end
              end
              if tokens[1] and tokens[1].token_name == 'TK_SQL_SELECT' and reads and not limited then
                proxy.queries:append(1, string.char(proxy.COM_QUERY) .. tokenizer.tokens_to_query(tokens) .. ' LIMIT 1')
                return proxy.PROXY_SEND_QUERY
              end
            end",
        turns: &[
            ("SELECT b FROM idioms.t ORDER BY a", "one"),
            ("SELECT b FROM idioms.t ORDER BY a LIMIT 2", "one; two"),
            ("SELECT COUNT(*) FROM idioms.t WHERE b = 'two'", "1"),
        ],
        log: "",
    },
    Idiom {
        name: "transactions and ids",
        text: "
            function read_query(packet)
              if packet:byte() ~= proxy.COM_QUERY then return end
              proxy.queries:append(packet:byte(), packet)
              return proxy.PROXY_SEND_QUERY
            end
            function read_query_result(inj)
              local rs = inj.resultset
              print(inj.query:sub(2, 7), rs.flags.in_trans, rs.flags.auto_commit, rs.affected_rows, rs.insert_id, rs.row_count)
            end",
        turns: &[
            ("BEGIN", ""),
            ("INSERT INTO idioms.n (b) VALUES ('x'), ('y')", ""),
            ("SELECT COUNT(*) FROM idioms.n", "2"),
            ("ROLLBACK", ""),
        ],
        log: "INSERT\ttrue\ttrue\t2\t1\t0",
    },
];

/// Rows with `;` between them, nothing for an OK, or an error's words.
fn told(client: &mut Raw, sql: &str) -> String {
    match client.ask(sql) {
        Ok(rows) => {
            let rows = rows.iter().map(|row| row.join(" "));
            rows.collect::<Vec<_>>().join("; ")
        }
        Err(error) => error.to_string(),
    }
}

fn load(proxy: &Proxy, text: &str) -> Outcome {
    let text = text.replace('\'', "''");
    let sql = format!(
        "DELETE FROM mysql_scripts; INSERT INTO mysql_scripts (script_name, body, on_error) VALUES ('idiom', '{text}', 'error'); LOAD MYSQL SCRIPTS TO RUNTIME"
    );
    proxy.admin(&sql).map(drop)
}

fn idioms(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    server.root(
        "CREATE DATABASE idioms; CREATE TABLE idioms.t (a INT PRIMARY KEY, b VARCHAR(10)); INSERT INTO idioms.t VALUES (1, 'one'), (2, 'two'); \
         CREATE TABLE idioms.n (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(10)) ENGINE=InnoDB",
    )?;
    let mut wrong = Vec::new();
    for idiom in IDIOMS {
        load(&proxy, idiom.text)?;
        let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        for (sql, wanted) in idiom.turns {
            let found = told(&mut client, sql);
            if found != *wanted {
                wrong.push(format!("{}: {sql}: {found}, not {wanted}", idiom.name));
            }
        }
        if !proxy.says(idiom.log) {
            wrong.push(format!("{}: the log has no '{}'", idiom.name, idiom.log));
        }
    }
    let errors =
        proxy.admin("SELECT hook, last_error FROM stats_millrace_scripts WHERE errors > 0")?;
    expect(wrong.is_empty() && errors.is_empty(), || {
        format!("{}\n{errors}", wrong.join("\n"))
    })?;
    follows_schemas(&proxy)?;
    hides_what_it_cannot_say(&proxy)
}

/// A script that answers wrongly, with `on_error = 'forward'`: neither its statement goes on nor the rows that it replaces.
fn hides_what_it_cannot_say(proxy: &Proxy) -> Outcome {
    let text = "
        function read_query(packet)
          if packet:find('DELETE') then
            proxy.response = { type = proxy.MYSQLD_PACKET_ERROR, errmsg = 'no' }
            return proxy.PROXY_SEND_RESULT
          end
          proxy.queries:append(1, packet, { resultset_is_needed = true })
          return proxy.PROXY_SEND_QUERY
        end
        function read_query_result(inj)
          if not inj.resultset.rows then return end
          proxy.response = { resultset = {} }
          return proxy.PROXY_SEND_RESULT
        end";
    load(proxy, text)?;
    proxy.admin("UPDATE mysql_scripts SET on_error = 'forward'; LOAD MYSQL SCRIPTS TO RUNTIME")?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    let failed = "1105 07000 The script 'idiom' has failed. Check the proxy's log";
    same(&told(&mut client, "DELETE FROM idioms.t"), failed)?;
    same(&told(&mut client, "SELECT * FROM idioms.t"), failed)?;
    load(proxy, "function read_query() end")?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    same(&told(&mut client, "SELECT COUNT(*) FROM idioms.t"), "2")
}

/// COM_INIT_DB as a command is seen and followed, and injected in front of statements.
fn follows_schemas(proxy: &Proxy) -> Outcome {
    load(proxy, "
        local seen = {}
        function read_query(packet)
          if packet:byte() == proxy.COM_INIT_DB then seen[#seen + 1] = packet:sub(2) end
          if packet:byte() ~= proxy.COM_QUERY then return end
          if packet:sub(2) == 'SHOW SCHEMAS SEEN' then
            proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'a' } }, rows = { { table.concat(seen, ',') .. ' ' .. proxy.connection.client.default_db } } } }
            return proxy.PROXY_SEND_RESULT
          end
          local schema, sql = packet:sub(2):match('^IN (%w+) (.*)$')
          if not schema then return end
          proxy.queries:append(2, string.char(proxy.COM_INIT_DB) .. schema, { resultset_is_needed = true })
          proxy.queries:append(1, string.char(proxy.COM_QUERY) .. sql, { resultset_is_needed = true })
          return proxy.PROXY_SEND_QUERY
        end
        function read_query_result(inj)
          if inj.id ~= 2 then return end
          if inj.resultset.query_status == proxy.MYSQLD_PACKET_ERR then proxy.queries:reset() return end
          return proxy.PROXY_IGNORE_RESULT
        end")?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    let mut said = || {
        client.command(b"\x02idioms")?;
        client.packet()
    };
    let said = said().map_err(|error| error.to_string())?;
    expect(said.first() == Some(&0), || format!("{said:?}"))?;
    for (sql, wanted) in [
        ("SELECT DATABASE()", "idioms"),
        ("SHOW SCHEMAS SEEN", "idioms idioms"),
        ("IN mysql SELECT DATABASE()", "mysql"),
        ("IN nosuch SELECT 1", "1049 42000 Unknown database 'nosuch'"),
        ("SHOW SCHEMAS SEEN", "idioms mysql"),
    ] {
        let found = told(&mut client, sql);
        expect(found == wanted, || format!("{sql}: {found}, not {wanted}"))?;
    }
    Ok(())
}
