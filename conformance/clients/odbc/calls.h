/* Calls that not every library has, and transactions. */

/* What the driver says of the connection: some of it asks the server. */
static bool about(void)
{
    static const SQLUSMALLINT words[] = {SQL_DBMS_NAME, SQL_DBMS_VER, SQL_DATABASE_NAME, SQL_SERVER_NAME, SQL_USER_NAME, SQL_IDENTIFIER_QUOTE_CHAR},
                              numbers[] = {SQL_TXN_CAPABLE, SQL_DEFAULT_TXN_ISOLATION, SQL_SCROLL_OPTIONS, SQL_GETDATA_EXTENSIONS};
    bool well = true;
    printf("  ");
    for (unsigned at = 0; at < sizeof words / sizeof *words; at++) {
        SQLWCHAR text[300] = {0};
        SQLSMALLINT length;
        SQLRETURN outcome = SQLGetInfoW(connection, words[at], text, sizeof text, &length);
        put_wide(text);
        putchar(' ');
        well = well && SQL_SUCCEEDED(outcome);
    }
    for (unsigned at = 0; at < sizeof numbers / sizeof *numbers; at++) {
        SQLUINTEGER number = 0;
        SQLSMALLINT length;
        SQLRETURN outcome = SQLGetInfoW(connection, numbers[at], &number, sizeof number, &length);
        printf(" %x", number);
        well = well && SQL_SUCCEEDED(outcome);
    }
    putchar('\n');
    return well;
}

/* All that the driver tells of a table: statements of its own to the server. */
static bool fields(const char *table)
{
    /* These tell of tables by what the connection has for its schema. */
    SQLWCHAR *name = wide(table), *all = wide("%"), *procedure = wide("gives%"), *schema = wide("conf");
    bool well = true;
    for (int which = 0; which < 9; which++) {
        SQLHSTMT statement = made();
        if (!statement)
            break;
        SQLRETURN outcome;
        switch (which) {
        case 0: outcome = SQLColumnsW(statement, NULL, 0, NULL, 0, name, SQL_NTS, all, SQL_NTS); break;
        case 1: outcome = SQLTablesW(statement, NULL, 0, NULL, 0, name, SQL_NTS, NULL, 0); break;
        case 2: outcome = SQLPrimaryKeysW(statement, NULL, 0, NULL, 0, name, SQL_NTS); break;
        case 3: outcome = SQLStatisticsW(statement, schema, SQL_NTS, NULL, 0, name, SQL_NTS, SQL_INDEX_ALL, SQL_QUICK); break;
        case 4: outcome = SQLForeignKeysW(statement, NULL, 0, NULL, 0, name, SQL_NTS, NULL, 0, NULL, 0, NULL, 0); break;
        case 5: outcome = SQLSpecialColumnsW(statement, SQL_BEST_ROWID, NULL, 0, NULL, 0, name, SQL_NTS, SQL_SCOPE_SESSION, SQL_NULLABLE); break;
        case 6: outcome = SQLProcedureColumnsW(statement, NULL, 0, NULL, 0, procedure, SQL_NTS, all, SQL_NTS); break;
        case 7: outcome = SQLTablePrivilegesW(statement, schema, SQL_NTS, NULL, 0, name, SQL_NTS); break;
        default: outcome = SQLGetTypeInfoW(statement, SQL_ALL_TYPES); break;
        }
        printf("  of kind %d\n", which);
        well = fine_of(outcome, statement) && results(statement) && well;
        SQLFreeHandle(SQL_HANDLE_STMT, statement);
    }
    free(name);
    free(all);
    free(procedure);
    free(schema);
    return well;
}

/* Of a connection, as a word. */
static bool number_of(SQLHDBC of, char *text, SQLLEN room)
{
    SQLHSTMT statement;
    SQLLEN length;
    if (!fine(SQLAllocHandle(SQL_HANDLE_STMT, of, &statement), SQL_HANDLE_DBC, of))
        return false;
    bool well = fine_of(execute_directly(statement, "SELECT CONNECTION_ID()"), statement) && fine_of(SQLFetch(statement), statement) &&
                fine_of(SQLGetData(statement, 1, SQL_C_CHAR, text, room, &length), statement);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    return well;
}

/* One connection ends another, and what is seen of that: `kill` is another's end, `be_killed` one's own. */
static bool end(bool own)
{
    char sql[64] = "KILL ";
    SQLINTEGER dead = -1;
    SQLHDBC other = another(), mine = connection;
    if (!other)
        return false;
    if (number_of(own ? mine : other, sql + 5, sizeof sql - 5)) {
        connection = own ? other : mine;
        query(sql);
        /* It ends when the server comes to it. */
        usleep(100000);
        connection = own ? mine : other;
        /* With which error is a matter of moments: the driver writes twice before it reads, and the second may be refused or not. */
        SQLHSTMT statement = made();
        printf(SQL_SUCCEEDED(execute_directly(statement, "SELECT 'still there'")) ? "  still there\n" : "  lost\n");
        SQLFreeHandle(SQL_HANDLE_STMT, statement);
        SQLGetConnectAttr(connection, SQL_ATTR_CONNECTION_DEAD, &dead, 0, NULL);
        printf("  dead=%d\n", dead);
        connection = mine;
    }
    good_bye(other);
    return true;
}

static bool set(SQLINTEGER what, uintptr_t value)
{
    return fine(SQLSetConnectAttr(connection, what, (SQLPOINTER)value, SQL_IS_UINTEGER), SQL_HANDLE_DBC, connection);
}

static bool finish(SQLSMALLINT how)
{
    bool well = fine(SQLEndTran(SQL_HANDLE_DBC, connection, how), SQL_HANDLE_DBC, connection);
    return set(SQL_ATTR_AUTOCOMMIT, SQL_AUTOCOMMIT_ON) && well;
}

static bool use(const char *schema)
{
    SQLWCHAR *name = wide(schema), now[100] = {0};
    SQLINTEGER length = 0;
    bool well = fine(SQLSetConnectAttrW(connection, SQL_ATTR_CURRENT_CATALOG, name, SQL_NTS), SQL_HANDLE_DBC, connection);
    free(name);
    SQLGetConnectAttrW(connection, SQL_ATTR_CURRENT_CATALOG, now, sizeof now, &length);
    printf("  catalog=");
    put_wide(now);
    putchar('\n');
    return well;
}

/* Carries a step out and says what it saw; whether it went well. */
static bool other_call(const char *verb, char **parts, int count, bool *known)
{
    const bool plain = count == 1 && !*parts[0];
    SQLINTEGER dead = -1;
    if (!strcmp(verb, "ping")) {
        bool well = fine(SQLGetConnectAttr(connection, SQL_ATTR_CONNECTION_DEAD, &dead, 0, NULL), SQL_HANDLE_DBC, connection);
        printf("  dead=%d\n", dead);
        return well;
    }
    if (!strcmp(verb, "begin") && plain)
        return set(SQL_ATTR_AUTOCOMMIT, SQL_AUTOCOMMIT_OFF);
    if (!strcmp(verb, "begin") && !strcmp(parts[0], "snapshot named"))
        return set(SQL_ATTR_TXN_ISOLATION, SQL_TXN_SERIALIZABLE) && query("SHOW VARIABLES LIKE '%\\_isolation'") &&
               set(SQL_ATTR_TXN_ISOLATION, SQL_TXN_REPEATABLE_READ) && set(SQL_ATTR_AUTOCOMMIT, SQL_AUTOCOMMIT_OFF);
    /* The next transaction begins by itself, the chain of ODBC. */
    if (!strcmp(verb, "commit") && !plain)
        return fine(SQLEndTran(SQL_HANDLE_DBC, connection, SQL_COMMIT), SQL_HANDLE_DBC, connection);
    if (!strcmp(verb, "commit"))
        return finish(SQL_COMMIT);
    if (!strcmp(verb, "rollback"))
        return finish(SQL_ROLLBACK);
    if (!strcmp(verb, "autocommit"))
        return set(SQL_ATTR_AUTOCOMMIT, strcmp(parts[0], "on") ? SQL_AUTOCOMMIT_OFF : SQL_AUTOCOMMIT_ON);
    if (!strcmp(verb, "use"))
        return use(parts[0]);
    if (!strcmp(verb, "about"))
        return about();
    if (!strcmp(verb, "exec"))
        return query(parts[0]);
    if (!strcmp(verb, "fields") && count == 2 && !*parts[1])
        return fields(parts[0]);
    if (!strcmp(verb, "kill"))
        return end(false);
    if (!strcmp(verb, "be_killed"))
        return end(true);
    *known = false;
    return false;
}
