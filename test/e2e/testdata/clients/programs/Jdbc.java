import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.*;
import java.util.*;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

/** pgJDBC: every method of DatabaseMetaData, parameters, fetch sizes, cursors, batches, timeouts. */
public class Jdbc {
    interface Tried { Object run() throws Exception; }

    static void works(String name, Tried f) {
        try {
            String r = String.valueOf(f.run());
            System.out.println("ok " + name + " " + (r.length() > 150 ? r.substring(0, 150) : r).replace('\n', ' '));
        } catch (Throwable e) {
            System.out.println("failed " + name + " " + String.valueOf(e.getMessage()).replace('\n', ' '));
        }
    }

    static void refused(String name, String state, Tried f) {
        works(name, () -> {
            try {
                f.run();
            } catch (SQLException e) {
                if (state.equals(e.getSQLState())) return state;
                throw e;
            }
            throw new Exception("was not refused");
        });
    }

    /** The number of rows, and the first two; at least that many must come. */
    static String rows(int least, ResultSet r) throws Exception {
        int columns = r.getMetaData().getColumnCount(), n = 0;
        StringBuilder b = new StringBuilder();
        while (r.next()) {
            n++;
            for (int i = 1; i <= columns; i++) {
                Object o = r.getObject(i);
                if (n <= 2) b.append(o).append('|');
            }
        }
        r.close();
        if (n < least) throw new Exception(n + " rows");
        return n + " rows " + b;
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.setProperty("user", args[1]);
        p.setProperty("password", args[2]);
        for (int i = 3; i < args.length; i++) p.setProperty(args[i].substring(0, args[i].indexOf('=')), args[i].substring(args[i].indexOf('=') + 1));
        boolean simple = "simple".equals(p.getProperty("preferQueryMode"));
        Connection c = DriverManager.getConnection(args[0], p);
        DatabaseMetaData m = c.getMetaData();
        System.out.println("version " + m.getDriverVersion() + " " + String.join(" ", Arrays.copyOfRange(args, 3, args.length)));

        works("catalogs", () -> rows(1, m.getCatalogs()));
        works("schemas", () -> rows(1, m.getSchemas(null, "pub%")));
        works("table types", () -> rows(1, m.getTableTypes()));
        works("tables", () -> rows(3, m.getTables(null, "public", "%", new String[] {"TABLE"})));
        works("all tables", () -> rows(100, m.getTables(null, null, "%", null)));
        for (String t : new String[] {"memories", "people", "memory_participants", "%"}) {
            int one = t.equals("%") ? 0 : 1;
            works("columns of " + t, () -> rows(3, m.getColumns(null, "public", t, null)));
            works("primary key of " + t, () -> rows(one, m.getPrimaryKeys(null, "public", t)));
            works("imported keys of " + t, () -> rows(t.equals("memory_participants") ? 1 : 0, m.getImportedKeys(null, "public", t)));
            works("exported keys of " + t, () -> rows(t.equals("memories") ? 1 : 0, m.getExportedKeys(null, "public", t)));
            works("indexes of " + t, () -> rows(one, m.getIndexInfo(null, "public", t, false, true)));
            works("row identifier of " + t, () -> rows(one, m.getBestRowIdentifier(null, "public", t, DatabaseMetaData.bestRowSession, true)));
            works("version columns of " + t, () -> rows(0, m.getVersionColumns(null, "public", t)));
            works("privileges of " + t, () -> rows(0, m.getTablePrivileges(null, "public", t)));
            works("column privileges of " + t, () -> rows(0, m.getColumnPrivileges(null, "public", t, "%")));
        }
        works("cross reference", () -> rows(1, m.getCrossReference(null, "public", "memories", null, "public", "memory_participants")));
        works("type info", () -> rows(50, m.getTypeInfo()));
        works("procedures", () -> rows(0, m.getProcedures(null, "public", "%")));
        works("procedure columns", () -> rows(0, m.getProcedureColumns(null, "public", "%", "%")));
        works("functions", () -> rows(1, m.getFunctions(null, "public", "%")));
        works("function columns", () -> rows(1, m.getFunctionColumns(null, "public", "%", "%")));
        works("types of the user", () -> rows(0, m.getUDTs(null, null, "%", null)));
        works("client info properties", () -> rows(1, m.getClientInfoProperties()));
        for (Method x : DatabaseMetaData.class.getMethods()) {
            if (x.getParameterCount() > 0 || x.getReturnType() == ResultSet.class || x.getName().equals("getRowIdLifetime")) continue;
            works(x.getName(), () -> {
                try {
                    return x.invoke(m);
                } catch (InvocationTargetException e) {
                    throw (Exception) e.getCause();
                }
            });
        }

        works("isValid", () -> { if (!c.isValid(5)) throw new Exception("no"); return ""; });
        works("schema", () -> { c.setSchema("public"); return c.getSchema(); });
        works("client info", () -> { c.setClientInfo("ApplicationName", "x y"); return c.getClientInfo(); });
        works("select", () -> rows(1, c.createStatement().executeQuery("SELECT * FROM memories")));
        works("result metadata", () -> {
            ResultSetMetaData d = c.createStatement().executeQuery("SELECT m.title AS t, m.* FROM memories m").getMetaData();
            String s = "";
            for (int i = 1; i <= d.getColumnCount(); i++)
                s += d.getColumnName(i) + ":" + d.getTableName(i) + ":" + d.getSchemaName(i) + ":" + d.getColumnTypeName(i) + ":" + d.isNullable(i) + ":" + d.isAutoIncrement(i) + " ";
            return s;
        });
        works("prepared ten times", () -> {
            PreparedStatement s = c.prepareStatement("SELECT title, occurred_at, metadata, id FROM memories WHERE title LIKE ? AND occurred_at > ? AND id IS DISTINCT FROM ?");
            String r = "";
            for (int i = 0; i < 10; i++) {
                s.setString(1, "%");
                s.setTimestamp(2, new Timestamp(0));
                s.setObject(3, UUID.randomUUID());
                r = rows(1, s.executeQuery());
            }
            return r;
        });
        works("array parameter", () -> {
            PreparedStatement s = c.prepareStatement("SELECT count(*) FROM memories WHERE title = ANY (?)");
            s.setArray(1, c.createArrayOf("text", new String[] {"a", "b"}));
            return rows(1, s.executeQuery());
        });
        works("arrays", () -> rows(1, c.createStatement().executeQuery("SELECT array_agg(id), '{1,2}'::int[] FROM people")));
        works("values", () -> rows(1, c.createStatement().executeQuery("SELECT 1.5::numeric, 1::bigint, true, 'x'::bytea, now(), null")));
        works("an extension's type", () -> rows(1, c.createStatement().executeQuery("SELECT embedding FROM memories LIMIT 3")));
        if (!simple) works("parameter metadata", () -> {
            ParameterMetaData d = c.prepareStatement("SELECT * FROM memories WHERE id = ? AND occurred_at > ?").getParameterMetaData();
            return d.getParameterTypeName(1) + d.getParameterTypeName(2);
        });
        works("fetch size", () -> {
            c.setAutoCommit(false);
            Statement s = c.createStatement();
            s.setFetchSize(3);
            String r = rows(4, s.executeQuery("SELECT * FROM memories"));
            c.commit();
            c.setAutoCommit(true);
            return r;
        });
        works("max rows", () -> { Statement s = c.createStatement(); s.setMaxRows(2); return rows(2, s.executeQuery("SELECT * FROM memories")); });
        works("scrolling", () -> {
            ResultSet r = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY).executeQuery("SELECT id FROM memories");
            r.last();
            return r.getRow();
        });
        refused("updating a row", "42501", () -> {
            ResultSet r = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE).executeQuery("SELECT * FROM people");
            r.next();
            r.updateString("name", "x");
            r.updateRow();
            return "";
        });
        works("several statements", () -> { Statement s = c.createStatement(); s.execute("SELECT 1; SELECT 2"); s.getMoreResults(); return rows(1, s.getResultSet()); });
        works("a batch that is refused", () -> {
            PreparedStatement s = c.prepareStatement("DELETE FROM people WHERE name = ?");
            for (int i = 0; i < 3; i++) { s.setString(1, "x"); s.addBatch(); }
            try {
                s.executeBatch();
            } catch (BatchUpdateException e) {
                return e.getSQLState();
            }
            throw new Exception("was not refused");
        });
        refused("query timeout", "57014", () -> { Statement s = c.createStatement(); s.setQueryTimeout(1); return s.executeQuery("SELECT count(*) FROM generate_series(1, 2000000000)"); });
        refused("cancel", "57014", () -> {
            Statement s = c.createStatement();
            new Thread(() -> { try { Thread.sleep(300); s.cancel(); } catch (Exception e) { } }).start();
            return s.executeQuery("SELECT count(*) FROM generate_series(1, 2000000000)");
        });
        works("savepoints", () -> {
            c.setAutoCommit(false);
            Savepoint one = c.setSavepoint(), two = c.setSavepoint("named x");
            try { c.createStatement().executeQuery("SELECT nope"); } catch (SQLException e) { }
            c.rollback(two);
            c.rollback(one);
            c.releaseSavepoint(one);
            String r = rows(1, c.createStatement().executeQuery("SELECT 1"));
            c.rollback();
            c.setAutoCommit(true);
            return r;
        });
        works("isolation", () -> { c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED); return c.getTransactionIsolation(); });
        works("serializable", () -> {
            c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            c.setAutoCommit(false);
            String r = rows(1, c.createStatement().executeQuery("SELECT * FROM people"));
            c.commit();
            c.setAutoCommit(true);
            c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            return r;
        });
        works("holdable cursor", () -> {
            c.setAutoCommit(false);
            Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY, ResultSet.HOLD_CURSORS_OVER_COMMIT);
            s.setFetchSize(2);
            String r = rows(3, s.executeQuery("SELECT * FROM memories"));
            c.commit();
            c.setAutoCommit(true);
            return r;
        });
        works("read only", () -> {
            c.setReadOnly(true);
            c.setAutoCommit(false);
            String r = rows(1, c.createStatement().executeQuery("SELECT 1"));
            c.commit();
            c.setAutoCommit(true);
            c.setReadOnly(false);
            return r;
        });
        if (!simple) works("a call", () -> {
            CallableStatement s = c.prepareCall("{? = call lower(?)}");
            s.registerOutParameter(1, Types.VARCHAR);
            s.setString(2, "X");
            s.execute();
            return s.getString(1);
        });
        works("escapes", () -> rows(1, c.createStatement().executeQuery("SELECT {fn ucase('x')}, {d '2024-01-01'}, {fn now()}")));
        works("copy", () -> new CopyManager((BaseConnection) c).copyOut("COPY (SELECT title FROM memories) TO STDOUT csv", new StringWriter()));
        refused("a column that is not there", "42703", () -> c.createStatement().executeQuery("SELECT titel FROM memories"));
        c.close();
        System.out.println("done");
    }
}
