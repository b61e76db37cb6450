<?php
// Runs scenarios through mysqli or PDO, both of which speak by mysqlnd, and prints all that the client can see.
//
//   php client.php mysqli|pdo|pdo-prepared
//
// Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
declare(strict_types=1);

function shown(mixed $value): string
{
    if (!is_string($value)) {
        return gettype($value) . ' ' . var_export($value, true);
    }
    if (strlen($value) > 200) {
        return sprintf('string len=%d sha256=%s', strlen($value), substr(hash('sha256', $value), 0, 16));
    }
    return 'string "' . addcslashes($value, "\0..\37\"\\\177..\377") . '"';
}

function row(array $values): void
{
    echo '  row ', implode(' | ', array_map('shown', $values)), "\n";
}

/** What it says of a thing, by names. */
function words(array $named): string
{
    array_walk($named, fn (&$value, $name) => $value = $name . '=' . (is_array($value) ? implode(',', $value) : var_export($value, true)));
    return implode(' ', $named);
}

/** A parameter: its kind as mysqli has it, and the value. What is sent ahead in pieces (`l:`) is a list of them. */
function argument(string $text): array
{
    [$kind, $rest] = explode(':', trim($text), 2);
    return match ($kind) {
        'i' => ['i', (int) $rest],
        'd' => ['d', (float) $rest],
        'n' => ['s', null],
        'b' => ['s', hex2bin($rest)],
        'L' => ['s', str_repeat('x', (int) $rest)],
        'l' => ['b', array_map(fn ($piece) => $piece[0] === '*' ? str_repeat('x', (int) substr($piece, 1)) : $piece, explode('|', $rest))],
        default => ['s', $rest],
    };
}

/** Procedures by variables of the session, as the manual of PHP has it: the call, and what to ask behind it. */
function as_variables(string $name, array $parts): array
{
    [$before, $given, $asked] = [[], [], []];
    foreach ($parts as $at => $part) {
        [$way, $value] = explode(' ', $part, 2) + [1 => null];
        if ($way === 'in') {
            $given[] = ['?', argument($value)];
            continue;
        }
        $given[] = ["@_$at", null];
        $asked[] = "@_$at";
        if ($value !== null) {
            $before[] = ["SET @_$at = ?", argument($value)];
        }
    }
    $call = "CALL $name(" . implode(', ', array_column($given, 0)) . ')';
    return [$before, $call, array_values(array_filter(array_column($given, 1))), $asked];
}

function step(object $client, array $where, string $verb, string $rest): bool
{
    $parts = array_map('trim', explode(' :: ', $rest));
    $name = array_shift($parts);
    if ($verb === 'connect') {
        $options = [];
        foreach (array_filter(explode(' ', $rest)) as $part) {
            [$key, $value] = explode('=', $part, 2);
            $options[$key] = $value;
        }
        $client->leave();
        $client->connect($where, $options + ['user' => $where['user'], 'password' => $where['password'], 'database' => '', 'tls' => 'off']);
        return true;
    }
    // `use` is a word of PHP's own, and to leave is to end the connection.
    $call = ['use' => 'schema', 'leave' => 'forget'][$verb] ?? $verb;
    if (!method_exists($client, $call)) {
        return false;
    }
    if (!$client->connected()) {
        throw new RuntimeException('not connected');
    }
    $values = fn (array $texts) => array_map('argument', $texts);
    $outcome = match ($verb) {
        'prepare' => $client->prepare($name, $parts[0]),
        'execute' => $client->execute($name, $values($parts)),
        'batch' => $client->batch($name, array_map(fn ($line) => $values(explode(' | ', $line)), $parts)),
        'call' => $client->call(...as_variables($name, $parts)),
        'cursor' => $client->cursor(explode(' ', $name)[0], $parts[0], $values(array_slice($parts, 1))),
        'fetch' => $client->fetch(...explode(' ', $rest)),
        'autocommit' => $client->autocommit($rest === 'on'),
        'change', 'async' => $client->$verb($name, ...$parts),
        'begin', 'commit', 'rollback' => $client->$verb(array_filter(explode(' ', $rest))),
        default => $rest === '' ? $client->$call() : $client->$call($rest),
    };
    return $outcome !== 'no such call';
}

function play(object $client, array $where, string $path): void
{
    echo '## ', basename($path), "\n";
    $lines = array_filter(file($path, FILE_IGNORE_NEW_LINES), fn ($line) => $line !== '' && $line[0] !== '#');
    if (!str_starts_with(reset($lines), 'connect')) {
        array_unshift($lines, 'connect database=conf tls=off');
    }
    foreach ($lines as $line) {
        echo "> $line\n";
        [$verb, $rest] = explode(' ', $line, 2) + [1 => ''];
        try {
            echo step($client, $where, $verb, $rest) ? "  ok\n" : "  this client has no such call\n";
        } catch (PDOException $error) {
            echo '  error ', implode(' ', array_map(fn ($part) => var_export($part, true), $error->errorInfo ?? [])), ' ', $error->getMessage(), "\n";
        } catch (mysqli_sql_exception $error) {
            echo '  error ', $error->getCode(), ' ', $error->getSqlState(), ' ', $error->getMessage(), "\n";
        } catch (Throwable $error) { // a library's own mistake is part of what it sees
            echo '  error ', $error::class, ' ', $error->getMessage(), "\n";
        }
    }
    try {
        $client->leave();
    } catch (Throwable $error) { // the last words of a broken connection
        echo '  error at close ', $error::class, "\n";
    }
}

set_error_handler(function (int $kind, string $words): bool {
    echo "  warning $words\n";
    return true;
});
require __DIR__ . '/mysqli.php';
require __DIR__ . '/pdo.php';
// By an echo each would be a write to the kernel.
ob_start();
while (($order = fgets(STDIN)) !== false) {
    [$host, $port, $user, $password, $path] = explode(' ', rtrim($order, "\n"), 5);
    $client = match ($argv[1]) {
        'mysqli' => new ByMysqli(),
        'pdo' => new ByPdo(true),
        'pdo-prepared' => new ByPdo(false),
    };
    play($client, ['host' => $host, 'port' => (int) $port, 'user' => $user, 'password' => $password], $path);
    echo "## end\n";
    ob_flush();
    flush();
    fwrite(STDERR, "## end\n");
}
