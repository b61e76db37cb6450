<?php
declare(strict_types=1);

/** PDO: parameters written into the text by itself, or every statement prepared by the server, also those without any. */
final class ByPdo
{
    private ?PDO $connection = null;
    private array $prepared = [];
    private array $open = [];

    public function __construct(private bool $emulated)
    {
    }

    public function connected(): bool
    {
        return $this->connection !== null;
    }

    public function leave(): void
    {
        [$this->prepared, $this->open] = [[], []];
        $this->connection = null;
    }

    public function connect(array $where, array $options): void
    {
        $charset = $options['charset'] ?? 'utf8mb4';
        $source = "mysql:host={$where['host']};port={$where['port']};charset=$charset";
        $set = [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_EMULATE_PREPARES => $this->emulated,
            PDO::ATTR_PERSISTENT => isset($options['persistent']),
            PDO::MYSQL_ATTR_LOCAL_INFILE => !isset($options['infile']),
            PDO::MYSQL_ATTR_FOUND_ROWS => isset($options['found_rows']),
            PDO::MYSQL_ATTR_IGNORE_SPACE => isset($options['ignore_space']),
            PDO::MYSQL_ATTR_COMPRESS => isset($options['compress']),
        ];
        if (isset($options['init'])) {
            $set[PDO::MYSQL_ATTR_INIT_COMMAND] = $options['init'];
        }
        if ($options['tls'] === 'on') {
            $set[PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT] = false;
            $set[PDO::MYSQL_ATTR_SSL_CIPHER] = 'DEFAULT';
        }
        $schema = $options['database'] === '' ? '' : ";dbname={$options['database']}";
        $this->connection = new PDO($source . $schema, $options['user'], $options['password'], $set);
    }

    private function results(PDOStatement $statement): void
    {
        do {
            for ($at = 0; $at < $statement->columnCount(); $at++) {
                echo '  column ', words($statement->getColumnMeta($at)), "\n";
            }
            if ($statement->columnCount()) {
                array_map('row', $statement->fetchAll(PDO::FETCH_NUM));
            }
            echo '  ', words(['rows' => $statement->rowCount(), 'error' => $statement->errorCode()]), "\n";
        } while ($statement->nextRowset());
        $this->status();
    }

    private function status(): void
    {
        echo '  ', words(['insert_id' => $this->connection->lastInsertId(), 'in_transaction' => $this->connection->inTransaction()]), "\n";
    }

    public function query(string $sql): void
    {
        $this->results($this->connection->query($sql));
    }

    public function script(string $sql): void
    {
        $this->query($sql);
    }

    /** As a text, without asking for rows. */
    public function exec(string $sql): void
    {
        echo '  ', var_export($this->connection->exec($sql), true), "\n";
        $this->status();
    }

    public function prepare(string $name, string $sql): ?string
    {
        unset($this->prepared[$name]);
        // PHP 8.2 crashes over what a procedure gives back by its parameters, also before servers.
        if (!$this->emulated && str_starts_with($sql, 'CALL ')) {
            return 'no such call';
        }
        $this->prepared[$name] = $this->connection->prepare($sql);
        return null;
    }

    private function run(PDOStatement $statement, array $values): void
    {
        foreach ($values as $at => [$kind, $value]) {
            $value = is_array($value) ? implode($value) : $value;
            $type = match (true) {
                $value === null => PDO::PARAM_NULL,
                $kind === 'i' => PDO::PARAM_INT,
                $kind === 'b' => PDO::PARAM_LOB,
                default => PDO::PARAM_STR,
            };
            $statement->bindValue($at + 1, $value, $type);
        }
        $statement->execute();
    }

    public function execute(string $name, array $values): void
    {
        $statement = $this->prepared[$name] ?? throw new RuntimeException('not prepared');
        $this->run($statement, $values);
        $this->results($statement);
    }

    public function close(string $name): void
    {
        if (!isset($this->prepared[$name])) {
            throw new RuntimeException('not prepared');
        }
        unset($this->prepared[$name]);
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
            $statement->closeCursor();
        }
        if ($asked) {
            $this->query('SELECT ' . implode(', ', $asked));
        }
    }

    /** It has none of the server's: rows that wait on the wire. */
    public function cursor(string $name, string $sql, array $values): void
    {
        $statement = $this->connection->prepare($sql, [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]);
        $this->run($statement, $values);
        $this->open[$name] = $statement;
    }

    public function fetch(string $name, string $count): void
    {
        $statement = $this->open[$name] ?? throw new RuntimeException('not open');
        for ($left = (int) $count; $left > 0; $left--) {
            $row = $statement->fetch(PDO::FETCH_NUM);
            if ($row === false) {
                echo '  no more, ', words($statement->errorInfo()), "\n";
                return;
            }
            row($row);
        }
    }

    /** What is left of its rows is read, by PHP. */
    public function forget(string $name): void
    {
        $statement = $this->open[$name] ?? throw new RuntimeException('not open');
        unset($this->open[$name]);
        $statement->closeCursor();
    }

    public function schema(string $name): void
    {
        $this->exec("USE `$name`");
    }

    public function begin(array $words): ?string
    {
        if ($words) {
            return 'no such call';
        }
        $this->connection->beginTransaction();
        $this->status();
        return null;
    }

    public function commit(array $words): ?string
    {
        if ($words) {
            return 'no such call';
        }
        $this->connection->commit();
        $this->status();
        return null;
    }

    public function rollback(array $words): ?string
    {
        if ($words) {
            return 'no such call';
        }
        $this->connection->rollBack();
        $this->status();
        return null;
    }

    public function autocommit(bool $on): void
    {
        $this->connection->setAttribute(PDO::ATTR_AUTOCOMMIT, $on);
        $this->status();
    }

    public function escape(string $text): void
    {
        row([$this->connection->quote($text)]);
    }

    public function about(): void
    {
        echo '  ', words([
            'server' => $this->connection->getAttribute(PDO::ATTR_SERVER_VERSION),
            'host' => $this->connection->getAttribute(PDO::ATTR_CONNECTION_STATUS),
        ]), "\n";
    }

    public function stat(): void
    {
        // What is counted differs from moment to moment; what there is to count does not.
        echo '  ', preg_replace('/[\d.]+/', '#', $this->connection->getAttribute(PDO::ATTR_SERVER_INFO)), "\n";
    }
}
