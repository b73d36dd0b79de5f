<?php
// PDO and the pgsql extension: parameters, emulated and scrolling ones, metadata, COPY.
[, $host, $port, $database, $user, $password] = $argv;
error_reporting(0);
$pdo = new PDO("pgsql:host=$host;port=$port;dbname=$database", $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$c = pg_connect("host=$host port=$port dbname=$database user=$user password=$password");
echo "version ", PHP_VERSION, "\n";

function works($name, $f) {
    try {
        $got = $f();
        echo $got === false ? 'failed ' : 'ok ', $name, ' ', substr(json_encode($got), 0, 150), "\n";
    } catch (Throwable $e) {
        echo "failed $name ", preg_replace('/\s+/', ' ', $e->getMessage()), "\n";
    }
}

function refused($name, $state, $f) {
    try {
        $f();
        echo "failed $name was not refused\n";
    } catch (PDOException $e) {
        echo $e->getCode() === $state ? 'ok' : 'failed', " $name ", $e->getCode(), "\n";
    }
}

$count = (int) $pdo->query('SELECT count(*) FROM memories')->fetchColumn();
works('attributes', fn() => [$pdo->getAttribute(PDO::ATTR_SERVER_VERSION), $pdo->getAttribute(PDO::ATTR_CONNECTION_STATUS)]);
works('parameters', function () use ($pdo) {
    $s = $pdo->prepare('SELECT * FROM memories WHERE title LIKE :t LIMIT 2');
    $s->execute(['t' => '%']);
    return count($s->fetchAll()) === 2;
});
works('column', fn() => $pdo->query('SELECT * FROM memories LIMIT 1')->getColumnMeta(0)['table'] === 'memories');
works('scrolling', function () use ($pdo, $count) {
    $pdo->beginTransaction();
    $s = $pdo->prepare('SELECT id FROM memories', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $s->execute();
    $row = $s->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, $count);
    $pdo->commit();
    return $row;
});
works('copy', fn() => count($pdo->pgsqlCopyToArray('memories', ',', 'NULL', 'id')) === $count);
works('emulated', function () use ($pdo) {
    $pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
    $s = $pdo->prepare('SELECT ?::text');
    $s->execute(["it's"]);
    return $s->fetchColumn() === "it's";
});
refused('last insert id', '42501', fn() => $pdo->lastInsertId());
works('pg_meta_data', fn() => array_keys(pg_meta_data($c, 'memories')));
works('pg_select', fn() => count(pg_select($c, 'memories', ['id' => $pdo->query('SELECT id FROM memories LIMIT 1')->fetchColumn()])) === 1);
works('pg_field', fn() => [pg_field_table($r = pg_query($c, 'SELECT id FROM memories'), 0), pg_field_type($r, 0)] === ['memories', 'uuid']);
works('pg_copy_to', fn() => count(pg_copy_to($c, 'memories')) === $count);
echo "done\n";
