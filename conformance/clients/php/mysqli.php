<?php
declare(strict_types=1);

/** mysqli: texts as they are, prepared statements by the server, its cursors where the connection asks for them. */
final class ByMysqli
{
    private const FLAGS = [
        'found_rows' => MYSQLI_CLIENT_FOUND_ROWS,
        'ignore_space' => MYSQLI_CLIENT_IGNORE_SPACE,
        'interactive' => MYSQLI_CLIENT_INTERACTIVE,
        'compress' => MYSQLI_CLIENT_COMPRESS,
    ];
    private const BEGIN = [
        'read_only' => MYSQLI_TRANS_START_READ_ONLY,
        'read_write' => MYSQLI_TRANS_START_READ_WRITE,
        'snapshot' => MYSQLI_TRANS_START_WITH_CONSISTENT_SNAPSHOT,
    ];
    private const END = ['chain' => MYSQLI_TRANS_COR_AND_CHAIN, 'no_chain' => MYSQLI_TRANS_COR_AND_NO_CHAIN, 'release' => MYSQLI_TRANS_COR_RELEASE];

    private ?mysqli $connection = null;
    private array $prepared = [];
    /** Results and statements that are read piece by piece, the latter with the row that they are bound to. */
    private array $open = [];
    /** How the connection was made: others are made like it. */
    private array $like = [];

    public function connected(): bool
    {
        return $this->connection !== null;
    }

    public function leave(): void
    {
        [$connection, $this->connection, $this->prepared] = [$this->connection, null, []];
        $this->open = [];
        $connection?->close();
    }

    public function connect(array $where, array $options): void
    {
        $this->like = [$where, $options];
        $this->connection = $this->another();
    }

    private function another(): mysqli
    {
        [$where, $options] = $this->like;
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $connection = mysqli_init();
        $connection->options(MYSQLI_OPT_LOCAL_INFILE, isset($options['infile']) ? 0 : 1);
        $connection->options(MYSQLI_SET_CHARSET_NAME, $options['charset'] ?? 'utf8mb4');
        if (isset($options['init'])) {
            $connection->options(MYSQLI_INIT_COMMAND, $options['init']);
        }
        $flags = array_sum(array_intersect_key(self::FLAGS, $options));
        if ($options['tls'] === 'on') {
            $connection->ssl_set(null, null, null, null, null);
            $flags |= MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT;
        }
        $host = (isset($options['persistent']) ? 'p:' : '') . $where['host'];
        $connection->real_connect($host, $options['user'], $options['password'], $options['database'], $where['port'], null, $flags);
        return $connection;
    }

    private function columns(mysqli_result $result): void
    {
        foreach ($result->fetch_fields() as $field) {
            echo '  column ', words(array_diff_key((array) $field, ['max_length' => 0])), "\n";
        }
    }

    private function result(mysqli $connection, mysqli_result|bool $result): void
    {
        if ($result instanceof mysqli_result) {
            $this->columns($result);
            array_map('row', $result->fetch_all(MYSQLI_NUM));
            $result->free();
        }
        $said = ['affected_rows', 'insert_id', 'warning_count', 'info', 'field_count', 'errno', 'sqlstate'];
        $named = [];
        foreach ($said as $name) {
            $named[$name] = $connection->$name;
        }
        echo '  ', words($named), "\n";
    }

    public function query(string $sql): void
    {
        // Several statements are a call of their own, for which the server is told that there may be several.
        if (preg_match('/;\s*\S/', $sql)) {
            $this->script($sql);
        } else {
            $this->result($this->connection, $this->connection->query($sql));
        }
    }

    public function script(string $sql): void
    {
        $this->connection->multi_query($sql);
        do {
            $this->result($this->connection, $this->connection->store_result());
        } while ($this->connection->more_results() && $this->connection->next_result());
    }

    public function prepare(string $name, string $sql): void
    {
        unset($this->prepared[$name]);
        $statement = $this->connection->prepare($sql);
        $this->prepared[$name] = $statement;
        echo "  parameters={$statement->param_count} columns={$statement->field_count}\n";
        if ($about = $statement->result_metadata()) {
            $this->columns($about);
        }
    }

    private function run(mysqli_stmt $statement, array $values): void
    {
        if ($values) {
            $given = array_map(fn ($value) => is_array($value[1]) ? null : $value[1], $values);
            $statement->bind_param(implode('', array_column($values, 0)), ...$given);
        }
        foreach ($values as $at => [, $value]) {
            foreach (is_array($value) ? $value : [] as $piece) {
                $statement->send_long_data($at, $piece);
            }
        }
        $statement->execute();
    }

    private function results(mysqli_stmt $statement): void
    {
        do {
            if ($result = $statement->get_result()) {
                $this->columns($result);
                array_map('row', $result->fetch_all(MYSQLI_NUM));
                $result->free();
            }
            echo '  ', words([
                'affected' => $statement->affected_rows, 'insert_id' => $statement->insert_id, 'errno' => $statement->errno,
                'warnings' => $this->connection->warning_count, 'info' => $this->connection->info,
            ]), "\n";
        } while ($statement->more_results() && $statement->next_result());
    }

    public function execute(string $name, array $values): void
    {
        $statement = $this->prepared[$name] ?? throw new RuntimeException('not prepared');
        $this->run($statement, $values);
        $this->results($statement);
    }

    public function close(string $name): void
    {
        $statement = $this->prepared[$name] ?? throw new RuntimeException('not prepared');
        unset($this->prepared[$name]);
        $statement->close();
    }

    /** It has no call for many rows: one statement that is executed for each. */
    public function batch(string $sql, array $rows): void
    {
        $statement = $this->connection->prepare($sql);
        foreach ($rows as $values) {
            $this->run($statement, $values);
            $this->results($statement);
        }
    }

    public function call(array $before, string $call, array $given, array $asked): void
    {
        foreach ([...$before, [$call, ...$given]] as $one) {
            $statement = $this->connection->prepare(array_shift($one));
            $this->run($statement, $one);
            $this->results($statement);
            $statement->close();
        }
        if ($asked) {
            $this->query('SELECT ' . implode(', ', $asked));
        }
    }

    /** By a cursor of the server; without, rows that wait on the wire. */
    public function cursor(string $name, string $sql, array $values): void
    {
        // Not where an error comes behind the columns: PHP then looks for rows for ever, also before servers.
        $by_server = ($this->like[1]['cursors'] ?? '') === 'on' && !str_contains($sql, '(SELECT ');
        if (!$by_server && !$values) {
            $this->open[$name] = [$this->connection->query($sql, MYSQLI_USE_RESULT)];
            return;
        }
        // What is left of a cursor PHP reads when it is closed, row by row: of 4,000 that takes longer than all else.
        $statement = $this->connection->prepare($by_server ? "$sql LIMIT 40" : $sql);
        if ($by_server) {
            $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
        }
        $this->run($statement, $values);
        $row = array_fill(0, $statement->field_count, null);
        $places = [];
        foreach ($row as $at => $_) {
            $places[] = &$row[$at];
        }
        $statement->bind_result(...$places);
        $this->open[$name] = [$statement, &$row];
    }

    public function fetch(string $name, string $count): void
    {
        [$from, $row] = ($this->open[$name] ?? throw new RuntimeException('not open')) + [1 => null];
        for ($left = (int) $count; $left > 0; $left--) {
            if ($from instanceof mysqli_result) {
                $row = $from->fetch_row();
            } elseif (!$from->fetch()) {
                $row = null;
            } else {
                $row = $this->open[$name][1];
            }
            if (!$row) {
                echo "  no more, errno={$this->connection->errno} {$this->connection->error}\n";
                return;
            }
            row($row);
        }
    }

    /** A result that is freed is read to its end first, by PHP. */
    public function forget(string $name): void
    {
        unset($this->open[$name]);
    }

    public function schema(string $name): void
    {
        $this->connection->select_db($name);
    }

    public function ping(): void
    {
        echo '  ', var_export($this->connection->ping(), true), "\n";
    }

    public function begin(array $words): void
    {
        $flags = array_sum(array_intersect_key(self::BEGIN, array_flip($words)));
        $names = array_diff($words, array_keys(self::BEGIN));
        $this->connection->begin_transaction($flags, reset($names) ?: null);
    }

    public function commit(array $words): void
    {
        $this->connection->commit(array_sum(array_intersect_key(self::END, array_flip($words))));
    }

    public function rollback(array $words): void
    {
        $this->connection->rollback(array_sum(array_intersect_key(self::END, array_flip($words))));
    }

    public function savepoint(string $name): void
    {
        $this->connection->savepoint($name);
    }

    public function release(string $name): void
    {
        $this->connection->release_savepoint($name);
    }

    public function autocommit(bool $on): void
    {
        $this->connection->autocommit($on);
    }

    public function change(string $user, string $password, string $database): void
    {
        $this->connection->change_user($user, $password, $database);
    }

    public function charset(string $name): void
    {
        $this->connection->set_charset($name);
        echo '  ', words((array) $this->connection->get_charset()), "\n";
    }

    public function escape(string $text): void
    {
        row([$this->connection->real_escape_string($text)]);
    }

    public function about(): void
    {
        $connection = $this->connection;
        echo '  ', words([
            'server' => $connection->server_info, 'version' => $connection->server_version, 'protocol' => $connection->protocol_version,
            'host' => $connection->host_info, 'charset' => $connection->character_set_name(),
            'own' => $connection->thread_id === (int) $connection->query('SELECT CONNECTION_ID()')->fetch_row()[0],
        ]), "\n";
    }

    public function stat(): void
    {
        // What is counted differs from moment to moment; what there is to count does not.
        echo '  ', preg_replace('/[\d.]+/', '#', $this->connection->stat()), "\n";
    }

    public function warnings(): void
    {
        $warning = $this->connection->get_warnings();
        echo $warning ? '' : "  none\n";
        while ($warning) {
            echo "  warning {$warning->errno} {$warning->sqlstate} {$warning->message}\n";
            $warning = $warning->next() ? $warning : null;
        }
    }

    /** All at once, each on a connection of its own. */
    public function async(string ...$texts): void
    {
        $connections = array_map(fn () => $this->another(), $texts);
        foreach ($texts as $at => $sql) {
            $connections[$at]->query($sql, MYSQLI_ASYNC);
        }
        $said = [];
        for ($waiting = $connections; $waiting;) {
            [$ready, $errors, $rejected] = [$waiting, $waiting, $waiting];
            if (!mysqli::poll($ready, $errors, $rejected, 10)) {
                throw new RuntimeException('nothing came');
            }
            foreach ($ready as $one) {
                $at = array_search($one, $connections, true);
                unset($waiting[array_search($one, $waiting, true)]);
                try {
                    $said[$at] = $one->reap_async_query();
                } catch (mysqli_sql_exception $error) {
                    $said[$at] = $error;
                }
            }
        }
        foreach ($connections as $at => $connection) {
            if ($said[$at] instanceof mysqli_sql_exception) {
                echo "  error {$said[$at]->getCode()} {$said[$at]->getMessage()}\n";
            } else {
                $this->result($connection, $said[$at]);
            }
            $connection->close();
        }
    }

    /** Another connection, which sees its end. */
    public function kill(): void
    {
        $other = $this->another();
        // MySQL 9 has no command for it any more; Millrace has.
        $by_command = str_contains($this->connection->server_info, 'MariaDB');
        $said = $by_command ? $this->connection->kill($other->thread_id) : $this->connection->query("KILL {$other->thread_id}");
        echo '  ', var_export($said, true), "\n";
        try {
            // It ends when the server comes to it.
            usleep(100_000);
            $this->result($other, $other->query("SELECT 'still there'"));
        } catch (mysqli_sql_exception $error) {
            echo "  the other: {$error->getCode()} {$error->getMessage()}\n";
        }
    }
}
