// Runs scenarios through a Connector/J, MySQL's or MariaDB's, and prints all that the client can see.
//
//   java -cp classes:lib/* Client mysql|mariadb
//
// Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;

public final class Client {
    private static PrintStream out;
    private static boolean mariadb;
    private final String host, port, user, password;
    private final Map<String, PreparedStatement> prepared = new HashMap<>();
    private final Map<String, ResultSet> cursors = new HashMap<>();
    private Connection connection;

    private Client(String[] args) {
        host = args[0];
        port = args[1];
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
            } catch (SQLException error) {
                // A lost connection is told with how long ago the last packet came, and MariaDB's library names the connection: no matter for a comparison.
                String message = String.valueOf(error.getMessage()).replaceAll("[\\d,]+ milliseconds", "N milliseconds")
                    .replaceAll("\\(conn=\\d+\\) ", "").replaceAll("\\s+", " ");
                out.println("  error " + error.getClass().getSimpleName() + " " + error.getErrorCode() + " " + error.getSQLState() + " " + message);
            }
        }
        leave();
    }

    private void leave() {
        try {
            if (connection != null) {
                connection.close();
            }
        } catch (SQLException error) {
            out.println("  error at close " + error.getErrorCode());
        }
        connection = null;
        prepared.clear();
        cursors.clear();
    }

    private void connect(Map<String, String> options) throws SQLException {
        leave();
        Properties properties = new Properties();
        properties.setProperty("user", options.getOrDefault("user", user));
        properties.setProperty("password", options.getOrDefault("password", password));
        properties.setProperty("sslMode", !"on".equals(options.get("tls")) ? mariadb ? "disable" : "DISABLED" : mariadb ? "trust" : "REQUIRED");
        properties.setProperty("allowPublicKeyRetrieval", "true");
        properties.setProperty("allowMultiQueries", "true");
        properties.setProperty("useServerPrepStmts", "true");
        properties.setProperty("connectionTimeZone", "UTC");
        properties.setProperty("maxAllowedPacket", "67108864");
        properties.setProperty("useCompression", String.valueOf(options.containsKey("compress")));
        properties.setProperty("paranoid", "false");
        properties.setProperty(mariadb ? "allowLocalInfile" : "allowLoadLocalInfile", String.valueOf(!"off".equals(options.get("infile"))));
        properties.setProperty("useCursorFetch", String.valueOf("on".equals(options.get("cursors"))));
        properties.setProperty("rewriteBatchedStatements", String.valueOf("on".equals(options.get("rewrite"))));
        connection = DriverManager.getConnection((mariadb ? "jdbc:mariadb://" : "jdbc:mysql://") + host + ":" + port + "/" + options.getOrDefault("database", ""), properties);
    }

    private boolean step(String verb, String rest) throws SQLException {
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
            throw new SQLException("not connected");
        }
        switch (verb) {
            case "query", "script" -> {
                try (Statement statement = connection.createStatement()) {
                    results(statement, statement.execute(rest, Statement.RETURN_GENERATED_KEYS), isInsert(rest));
                }
            }
            case "batch" -> batch(parts);
            case "cursor" -> {
                String[] words = parts[0].split(" ");
                PreparedStatement statement = connection.prepareStatement(parts[1], ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
                statement.setFetchSize(Integer.parseInt(words[1]));
                for (int i = 2; i < parts.length; i++) {
                    argument(statement, i - 1, parts[i].trim());
                }
                cursors.put(words[0], statement.executeQuery());
            }
            case "fetch" -> {
                ResultSet rows = cursor(parts[0].split(" ")[0]);
                for (int left = Integer.parseInt(rest.split(" ")[1]); left > 0 && rows.next(); left--) {
                    row(rows, rows.getMetaData().getColumnCount());
                }
            }
            case "leave" -> {
                cursor(rest).getStatement().close();
                cursors.remove(rest);
            }
            case "attributed" -> {
                if (mariadb) {
                    return false;
                }
                try (Statement statement = connection.createStatement()) {
                    String[] attribute = parts[0].split("=", 2);
                    ((com.mysql.cj.jdbc.JdbcStatement) statement).setAttribute(attribute[0], attribute[1]);
                    results(statement, statement.execute(parts[1]), false);
                }
            }
            case "prepare" -> prepared.put(parts[0], connection.prepareStatement(parts[1]));
            case "execute" -> {
                PreparedStatement statement = prepared.get(parts[0]);
                if (statement == null) {
                    throw new SQLException("not prepared");
                }
                for (int i = 1; i < parts.length; i++) {
                    argument(statement, i, parts[i].trim());
                }
                results(statement, statement.execute(), false);
            }
            case "call" -> call(parts);
            case "close" -> {
                PreparedStatement statement = prepared.remove(rest);
                if (statement == null) {
                    throw new SQLException("not prepared");
                }
                statement.close();
            }
            case "ping" -> out.println("  valid=" + connection.isValid(30));
            case "begin" -> connection.setAutoCommit(false);
            case "commit" -> {
                connection.commit();
                connection.setAutoCommit(true);
            }
            case "rollback" -> {
                connection.rollback();
                connection.setAutoCommit(true);
            }
            case "autocommit" -> {
                connection.setAutoCommit(rest.equals("on"));
                out.println("  autocommit=" + connection.getAutoCommit());
            }
            case "use" -> {
                connection.setCatalog(rest);
                out.println("  catalog=" + connection.getCatalog());
            }
            case "reset" -> {
                if (mariadb) {
                    ((org.mariadb.jdbc.Connection) connection).reset();
                } else {
                    ((com.mysql.cj.jdbc.JdbcConnection) connection).resetServerState();
                }
            }
            case "change" -> {
                if (mariadb) {
                    return false;
                }
                ((com.mysql.cj.jdbc.JdbcConnection) connection).changeUser(parts[0], parts[1]);
                connection.setCatalog(parts[2]);
            }
            default -> {
                return false;
            }
        }
        return true;
    }

    private ResultSet cursor(String name) throws SQLException {
        ResultSet rows = cursors.get(name);
        if (rows == null) {
            throw new SQLException("no such cursor");
        }
        return rows;
    }

    private void batch(String[] parts) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(parts[0])) {
            for (int i = 1; i < parts.length; i++) {
                String[] values = parts[i].trim().split(" \\| ");
                for (int j = 0; j < values.length; j++) {
                    argument(statement, j + 1, values[j].trim());
                }
                statement.addBatch();
            }
            out.println("  affected=" + Arrays.toString(statement.executeBatch()));
        } catch (BatchUpdateException error) {
            out.println("  affected=" + Arrays.toString(error.getUpdateCounts()));
            throw error;
        }
    }

    /** A parameter is "in VALUE", "out" or "inout VALUE". */
    private void call(String[] parts) throws SQLException {
        String marks = String.join(", ", Collections.nCopies(parts.length - 1, "?"));
        try (CallableStatement statement = connection.prepareCall("{call " + parts[0] + "(" + marks + ")}")) {
            for (int i = 1; i < parts.length; i++) {
                String[] words = parts[i].trim().split(" ", 2);
                if (words.length > 1) {
                    argument(statement, i, words[1]);
                }
                if (!words[0].equals("in")) {
                    statement.registerOutParameter(i, Types.VARCHAR);
                }
            }
            results(statement, statement.execute(), false);
            for (int i = 1; i < parts.length; i++) {
                if (!parts[i].trim().startsWith("in ")) {
                    byte[] bytes = mariadb ? utf8(statement.getString(i)) : statement.getBytes(i);
                    out.println("  out " + i + " " + (bytes == null ? "NULL" : shown(bytes)));
                }
            }
        }
    }

    private static boolean isInsert(String sql) {
        return sql.regionMatches(true, 0, "INSERT", 0, 6) || sql.regionMatches(true, 0, "REPLACE", 0, 7);
    }

    private static void argument(PreparedStatement statement, int at, String text) throws SQLException {
        String rest = text.substring(2);
        switch (text.charAt(0)) {
            case 'i' -> statement.setLong(at, Long.parseLong(rest));
            case 'd' -> statement.setDouble(at, Double.parseDouble(rest));
            case 'b' -> statement.setBytes(at, HexFormat.of().parseHex(rest));
            case 'n' -> statement.setNull(at, Types.NULL);
            case 'L' -> statement.setString(at, "x".repeat(Integer.parseInt(rest)));
            default -> statement.setString(at, rest);
        }
    }

    private static void results(Statement statement, boolean rows, boolean keys) throws SQLException {
        while (true) {
            if (rows) {
                result(statement.getResultSet());
            } else {
                long affected = statement.getLargeUpdateCount();
                if (affected == -1) {
                    break;
                }
                out.print("  affected=" + affected);
                if (keys) {
                    try (ResultSet made = statement.getGeneratedKeys()) {
                        out.print(" keys=");
                        while (made.next()) {
                            out.print(made.getString(1) + ",");
                        }
                    }
                }
                out.println();
            }
            for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) {
                out.println("  warning " + warning.getErrorCode() + " " + warning.getSQLState() + " " + warning.getMessage());
            }
            rows = statement.getMoreResults();
        }
    }

    private static void result(ResultSet rows) throws SQLException {
        ResultSetMetaData about = rows.getMetaData();
        for (int i = 1; i <= about.getColumnCount(); i++) {
            out.println("  column " + about.getColumnLabel(i) + " " + about.getColumnTypeName(i) + " " + about.getColumnClassName(i)
                + " table=" + about.getTableName(i) + " org=" + about.getColumnName(i) + " db=" + about.getCatalogName(i)
                + " length=" + about.getColumnDisplaySize(i) + " precision=" + about.getPrecision(i) + "," + about.getScale(i)
                + " null=" + about.isNullable(i) + " auto=" + about.isAutoIncrement(i) + " signed=" + about.isSigned(i));
        }
        while (rows.next()) {
            row(rows, about.getColumnCount());
        }
        rows.close();
    }

    private static void row(ResultSet rows, int columns) throws SQLException {
        StringBuilder line = new StringBuilder("  row ");
        for (int i = 1; i <= columns; i++) {
            byte[] bytes = bytes(rows, i);
            line.append(i > 1 ? " | " : "").append(bytes == null ? "NULL" : shown(bytes));
        }
        out.println(line);
    }

    /** MariaDB's library gives numbers and times as strings only. */
    private static byte[] bytes(ResultSet rows, int column) throws SQLException {
        if (!mariadb || rows.getMetaData().getColumnClassName(column).equals("byte[]")) {
            return rows.getBytes(column);
        }
        return utf8(rows.getString(column));
    }

    private static byte[] utf8(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String shown(byte[] bytes) {
        try {
            if (bytes.length > 200) {
                byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
                return "len=" + bytes.length + " sha256=" + HexFormat.of().formatHex(sum, 0, 8);
            }
        } catch (java.security.NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
        for (byte one : bytes) {
            if (one < 0x20 && one >= 0 || one < 0) {
                return "x" + HexFormat.of().formatHex(bytes);
            }
        }
        return "'" + new String(bytes, StandardCharsets.US_ASCII) + "'";
    }
}
