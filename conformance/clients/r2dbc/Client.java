// Runs scenarios through R2DBC, by the driver io.asyncer:r2dbc-mysql or MariaDB's, and prints all that the client can see.
//
//   java -cp classes:lib/* Client mysql|mariadb
//
// Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.

import io.asyncer.r2dbc.mysql.MySqlConnectionConfiguration;
import io.asyncer.r2dbc.mysql.MySqlConnectionFactory;
import io.asyncer.r2dbc.mysql.constant.CompressionAlgorithm;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.ColumnMetadata;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Parameters;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcType;
import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.ValidationDepth;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.mariadb.r2dbc.MariadbConnectionConfiguration;
import org.mariadb.r2dbc.MariadbConnectionFactory;
import org.mariadb.r2dbc.SslMode;
import org.mariadb.r2dbc.api.MariadbConnection;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

public final class Client {
    private static final Duration AT_MOST = Duration.ofSeconds(30);
    private static PrintStream out;
    private static boolean mariadb;
    private final String host, user, password;
    private final int port;
    /** Texts: the libraries prepare when they execute, and remember what they prepared. */
    private final Map<String, String> prepared = new HashMap<>();
    private final Map<String, List<String>> open = new HashMap<>();
    private Connection connection;

    private Client(String[] args) {
        host = args[0];
        port = Integer.parseInt(args[1]);
        user = args[2];
        password = args[3];
    }

    public static void main(String[] args) throws Exception {
        mariadb = args[0].equals("mariadb");
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ", 5);
            new Client(words).play(Path.of(words[4]));
            out.println("## end");
            out.flush();
            System.err.println("## end");
        }
        // Threads of the network stay otherwise.
        System.exit(0);
    }

    private void play(Path path) throws java.io.IOException {
        out.println("## " + path.getFileName());
        List<String> lines = new ArrayList<>(Files.readAllLines(path));
        lines.removeIf(line -> line.isEmpty() || line.startsWith("#"));
        if (!lines.get(0).startsWith("connect")) {
            lines.add(0, "connect database=conf tls=off");
        }
        for (String line : lines) {
            out.println("> " + line);
            String[] words = line.split(" ", 2);
            try {
                boolean known = step(words[0], words.length > 1 ? words[1] : "");
                out.println(known ? "  ok" : "  this client has no such call");
            } catch (RuntimeException error) {
                out.println("  " + complaint(error));
            }
        }
        leave();
    }

    private static String complaint(Throwable error) {
        // Their own numbers and addresses: no matter for a comparison.
        String message = String.valueOf(error.getMessage()).replaceAll("(?i)(conn(ection)?[ =:]+)\\d+", "$1#").replaceAll("127.0.0.1[:/]\\d+", "HERE")
            .replaceAll("@[0-9a-f]{4,8}\\b", "@#").replaceAll("\\s+", " ");
        String codes = error instanceof R2dbcException told ? " " + told.getErrorCode() + " " + told.getSqlState() : "";
        return "error " + error.getClass().getSimpleName() + codes + " " + message;
    }

    private void leave() {
        try {
            if (connection != null) {
                await(connection.close());
            }
        } catch (RuntimeException error) {
            out.println("  at close: " + complaint(error));
        }
        connection = null;
        prepared.clear();
        open.clear();
    }

    private static <T> T await(Publisher<T> something) {
        return Flux.from(something).blockLast(AT_MOST);
    }

    private void connect(Map<String, String> options) {
        leave();
        connection = await(factory(options).create());
        out.println("  " + connection.getMetadata().getDatabaseProductName() + " " + connection.getMetadata().getDatabaseVersion() + " "
            + connection.getTransactionIsolationLevel() + " autocommit=" + connection.isAutoCommit());
    }

    private ConnectionFactory factory(Map<String, String> options) {
        boolean tls = "on".equals(options.get("tls"));
        String name = options.getOrDefault("user", user), secret = options.getOrDefault("password", password), schema = options.getOrDefault("database", "");
        if (mariadb) {
            var wish = MariadbConnectionConfiguration.builder().host(host).port(port).username(name).password(secret)
                .allowPublicKeyRetrieval(true).useServerPrepStmts(!"in_text".equals(options.get("parameters"))).allowPipelining(true).sslMode(tls ? SslMode.TRUST : SslMode.DISABLE);
            if (options.containsKey("variables")) {
                wish.sessionVariables(Map.of("sql_mode", "ANSI_QUOTES", "group_concat_max_len", 2048)).timezone("+05:30");
            }
            return new MariadbConnectionFactory((schema.isEmpty() ? wish : wish.database(schema)).build());
        }
        var wish = MySqlConnectionConfiguration.builder().host(host).port(port).user(name).password(secret).useServerPrepareStatement()
            .allowLoadLocalInfileInPath(Path.of("").toAbsolutePath().toString()).sslMode(tls ? io.asyncer.r2dbc.mysql.constant.SslMode.REQUIRED : io.asyncer.r2dbc.mysql.constant.SslMode.DISABLED);
        if (options.containsKey("compress")) {
            // The other needs a library of its own.
            wish.compressionAlgorithms(CompressionAlgorithm.ZLIB);
        }
        if (options.containsKey("variables")) {
            wish.sessionVariables("sql_mode='ANSI_QUOTES'", "group_concat_max_len=2048").connectionTimeZone("+05:30").forceConnectionTimeZoneToSession(true)
                .lockWaitTimeout(Duration.ofSeconds(7)).statementTimeout(Duration.ofSeconds(40));
        }
        return MySqlConnectionFactory.from((schema.isEmpty() ? wish : wish.database(schema)).build());
    }

    /** Everything that results have, in their order. */
    private static Flux<String> told(Publisher<? extends Result> results) {
        return Flux.from(results).concatMap(result -> {
            boolean[] first = {true};
            return Flux.from(result.flatMap(segment -> {
                List<String> lines = new ArrayList<>();
                if (segment instanceof Result.RowSegment some) {
                    if (first[0]) {
                        some.row().getMetadata().getColumnMetadatas().forEach(column -> lines.add(column(column)));
                    }
                    first[0] = false;
                    lines.add("  row " + values(some.row(), some.row().getMetadata().getColumnMetadatas().size()));
                } else if (segment instanceof Result.OutSegment some) {
                    lines.add("  out " + values(some.outParameters(), some.outParameters().getMetadata().getParameterMetadatas().size()));
                }
                if (segment instanceof Result.UpdateCount count) {
                    lines.add("  affected=" + count.value());
                }
                if (segment instanceof Result.Message message) {
                    lines.add("  message " + complaint(message.exception()));
                }
                return Flux.fromIterable(lines);
            })).concatWith(Mono.just("  end of a result"));
        });
    }

    private static String column(ColumnMetadata column) {
        return "  column " + column.getName() + " " + column.getType().getName() + " " + column.getJavaType() + " " + column.getNullability() + " "
            + column.getPrecision() + " " + column.getScale();
    }

    private static String values(Readable row, int count) {
        List<String> all = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            try {
                all.add(shown(row.get(at)));
            } catch (RuntimeException error) {
                all.add(complaint(error));
            }
        }
        return String.join(" | ", all);
    }

    private static String shown(Object value) {
        if (value == null) {
            return "null";
        }
        byte[] bytes = null;
        if (value instanceof byte[] some) {
            bytes = some;
        } else if (value instanceof ByteBuffer some) {
            bytes = new byte[some.remaining()];
            some.get(bytes);
        }
        if (value instanceof Object[] some) {
            return "list " + Arrays.toString(some);
        }
        String words = bytes == null ? value.toString() : HexFormat.of().formatHex(bytes);
        if (words.length() > 200) {
            try {
                byte[] hash = MessageDigest.getInstance("SHA-256").digest(words.getBytes(StandardCharsets.UTF_8));
                words = "len=" + words.length() + " sha256=" + HexFormat.of().formatHex(hash, 0, 8);
            } catch (java.security.NoSuchAlgorithmException error) {
                throw new IllegalStateException(error);
            }
        }
        return value.getClass().getSimpleName() + " " + words.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0");
    }

    /** Line by line, so that what comes before an error is told. */
    private static void tell(Flux<String> lines) {
        lines.doOnNext(out::println).blockLast(AT_MOST);
    }

    private static Statement bind(Statement statement, int at, String text) {
        String[] pair = text.trim().split(":", 2);
        return switch (pair[0]) {
            case "i" -> statement.bind(at, Long.valueOf(pair[1]));
            case "d" -> statement.bind(at, Double.valueOf(pair[1]));
            case "n" -> statement.bindNull(at, String.class);
            case "b" -> statement.bind(at, ByteBuffer.wrap(HexFormat.of().parseHex(pair[1])));
            case "L" -> statement.bind(at, "x".repeat(Integer.parseInt(pair[1])));
            default -> statement.bind(at, pair.length > 1 ? pair[1] : "");
        };
    }

    private Statement bound(String sql, String[] parts, int from) {
        Statement statement = connection.createStatement(sql);
        for (int at = from; at < parts.length; at++) {
            bind(statement, at - from, parts[at]);
        }
        return statement;
    }

    private boolean step(String verb, String rest) {
        String[] parts = rest.split(" :: ", -1);
        if (verb.equals("connect")) {
            Map<String, String> options = new HashMap<>();
            for (String part : rest.split(" ")) {
                String[] pair = part.split("=", 2);
                if (pair.length == 2) {
                    options.put(pair[0], pair[1]);
                }
            }
            connect(options);
            return true;
        }
        if (connection == null) {
            throw new IllegalStateException("not connected");
        }
        switch (verb) {
            case "query" -> tell(told(connection.createStatement(rest).execute()));
            case "script" -> {
                Batch batch = connection.createBatch();
                for (String part : rest.split("; ")) {
                    batch.add(part);
                }
                tell(told(batch.execute()));
            }
            case "generated" -> tell(told(connection.createStatement(rest).returnGeneratedValues().execute()));
            case "at_once" -> atOnce(parts);
            case "prepare" -> prepared.put(parts[0], parts[1]);
            case "execute" -> {
                if (!prepared.containsKey(parts[0])) {
                    throw new IllegalStateException("not prepared");
                }
                tell(told(bound(prepared.get(parts[0]), parts, 1).execute()));
            }
            case "close" -> {
                if (prepared.remove(rest) == null) {
                    throw new IllegalStateException("not prepared");
                }
            }
            case "batch" -> {
                Statement statement = connection.createStatement(parts[0]);
                for (int row = 1; row < parts.length; row++) {
                    String[] values = parts[row].split(" \\| ");
                    for (int at = 0; at < values.length; at++) {
                        bind(statement, at, values[at]);
                    }
                    if (row + 1 < parts.length) {
                        statement.add();
                    }
                }
                tell(told(statement.execute()));
            }
            case "call" -> call(parts);
            case "cursor" -> cursor(parts);
            case "fetch" -> {
                List<String> rows = open.get(parts[0].split(" ")[0]);
                if (rows == null) {
                    throw new IllegalStateException("not open");
                }
                for (int left = Integer.parseInt(rest.split(" ")[1]); left > 0 && !rows.isEmpty(); left--) {
                    out.println(rows.remove(0));
                }
            }
            case "leave" -> open.remove(rest);
            case "ping" -> out.println("  valid=" + await(connection.validate(ValidationDepth.REMOTE)));
            case "begin" -> await(switch (rest) {
                case "read_only" -> connection.beginTransaction(mariadb ? org.mariadb.r2dbc.MariadbTransactionDefinition.READ_ONLY
                    : io.asyncer.r2dbc.mysql.api.MySqlTransactionDefinition.mutability(false));
                case "snapshot" -> connection.beginTransaction(mariadb
                    ? org.mariadb.r2dbc.MariadbTransactionDefinition.WITH_CONSISTENT_SNAPSHOT_READ_ONLY
                    : io.asyncer.r2dbc.mysql.api.MySqlTransactionDefinition.empty().consistent());
                case "serializable" -> connection.beginTransaction(IsolationLevel.SERIALIZABLE);
                default -> connection.beginTransaction();
            });
            case "commit" -> await(connection.commitTransaction());
            case "rollback" -> await(connection.rollbackTransaction());
            case "savepoint" -> await(connection.createSavepoint(rest));
            case "release" -> await(connection.releaseSavepoint(rest));
            case "back_to" -> await(connection.rollbackTransactionToSavepoint(rest));
            case "isolation" -> {
                await(connection.setTransactionIsolationLevel(IsolationLevel.valueOf(rest)));
                out.println("  isolation=" + connection.getTransactionIsolationLevel());
            }
            case "lock_wait" -> await(connection.setLockWaitTimeout(Duration.ofSeconds(Long.parseLong(rest))));
            case "time_limit" -> await(connection.setStatementTimeout(Duration.ofSeconds(Long.parseLong(rest))));
            case "autocommit" -> {
                await(connection.setAutoCommit(rest.equals("on")));
                out.println("  autocommit=" + connection.isAutoCommit());
            }
            case "use" -> {
                if (connection instanceof MariadbConnection own) {
                    await(own.setDatabase(rest));
                    out.println("  database=" + own.getDatabase());
                } else {
                    tell(told(connection.createStatement("USE " + rest).execute()));
                }
            }
            default -> {
                return false;
            }
        }
        return true;
    }

    /** All are asked for before the first has answered; what they see is told in their order. A text is followed by its parameters, each behind a bar. */
    private void atOnce(String[] texts) {
        List<List<String>> seen = new ArrayList<>();
        List<Mono<Void>> all = new ArrayList<>();
        for (String text : texts) {
            List<String> lines = new ArrayList<>();
            String[] parts = text.split(" \\| ");
            seen.add(lines);
            all.add(Flux.defer(() -> told(bound(parts[0], parts, 1).execute())).doOnNext(lines::add).onErrorResume(error -> {
                lines.add("  " + complaint(error));
                return Mono.empty();
            }).then());
        }
        try {
            Flux.merge(Flux.fromIterable(all), Math.max(1, all.size())).blockLast(AT_MOST);
        } finally {
            seen.forEach(lines -> {
                lines.forEach(out::println);
                out.println("  --");
            });
        }
    }

    /** MariaDB's driver gives back what parameters became. */
    private void call(String[] parts) {
        Statement statement = connection.createStatement("CALL " + parts[0] + "(" + String.join(", ", Arrays.asList(parts).subList(1, parts.length).stream().map(part -> "?").toList()) + ")");
        for (int at = 1; at < parts.length; at++) {
            String[] words = parts[at].split(" ", 2);
            if (words[0].equals("in") || !mariadb) {
                bind(statement, at - 1, words.length > 1 ? words[1] : "n:");
            } else if (words[0].equals("out")) {
                statement.bind(at - 1, Parameters.out(R2dbcType.VARCHAR));
            } else {
                String value = words[1].split(":", 2)[1];
                statement.bind(at - 1, Parameters.inOut(R2dbcType.VARCHAR, words[1].startsWith("n") ? null : value));
            }
        }
        tell(told(statement.execute()));
    }

    /**
     * By a cursor of the server where the library has them. A stream that nobody reads would keep all others from the connection: it is read here, by as many
     * rows as the scenario says. Those of a cursor `b` are left after five lines.
     */
    private void cursor(String[] parts) {
        String[] words = parts[0].split(" ");
        int size = Integer.parseInt(words[1]);
        List<String> rows = new ArrayList<>();
        open.put(words[0], rows);
        Flux<String> lines = told(bound(parts[1], parts, 2).fetchSize(size).execute()).limitRate(size);
        (words[0].equals("b") ? lines.take(5) : lines).doOnNext(rows::add).blockLast(AT_MOST);
    }
}
