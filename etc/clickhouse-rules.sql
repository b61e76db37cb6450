-- What MySQL's functions are in ClickHouse: rules for statements that go to its port. Read by a client on
-- the admin port:  mysql -u admin -padmin -h 127.0.0.1 -P 6032 < etc/clickhouse-rules.sql
-- They look at what another rule has marked with flagOUT = 6090, such as all that a user says:
--   INSERT INTO mysql_query_rules (rule_id, active, username, flagOUT) VALUES (6000, 1, 'clicku', 6090);
-- docs/features/clickhouse.md says what they cannot do. Arguments may have two levels of brackets.
DELETE FROM mysql_query_rules WHERE rule_id BETWEEN 6090 AND 6199;
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6090, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%Y-%m-%d %H:%i:%s''\s*\)',
   '\1(\2, ''%Y-%m-%d %H:%M:%S'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%Y-%m-%d %H:%i:%s''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6091, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%Y-%m-%d %H:%i''\s*\)',
   '\1(\2, ''%Y-%m-%d %H:%M'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%Y-%m-%d %H:%i''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6092, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%H:%i:%s''\s*\)',
   '\1(\2, ''%H:%M:%S'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%H:%i:%s''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6093, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%H:%i''\s*\)',
   '\1(\2, ''%H:%M'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%H:%i''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6094, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%Y-%m-%d %T''\s*\)',
   '\1(\2, ''%Y-%m-%d %H:%M:%S'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%Y-%m-%d %T''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6095, 1, 6090, '\b(DATE_FORMAT|FROM_UNIXTIME)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*''%T''\s*\)',
   '\1(\2, ''%H:%M:%S'')', 'CASELESS,GLOBAL', 'minutes and seconds of ''%T''');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6096, 1, 6090, '\bFROM_UNIXTIME\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*(''[^'']*'')\s*\)',
   'formatDateTime(toDateTime(\1), \2)', 'CASELESS,GLOBAL', 'FROM_UNIXTIME with a format');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6097, 1, 6090, '\bFROM_UNIXTIME\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toDateTime(\1)', 'CASELESS,GLOBAL', 'FROM_UNIXTIME');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6098, 1, 6090, '\bDATE_FORMAT\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*(''[^'']*'')\s*\)',
   'formatDateTime(\1, \2)', 'CASELESS,GLOBAL', 'DATE_FORMAT');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6099, 1, 6090, '\bUNIX_TIMESTAMP\(\s*\)',
   'toUnixTimestamp(now())', 'CASELESS,GLOBAL', 'UNIX_TIMESTAMP of now');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6100, 1, 6090, '\bUNIX_TIMESTAMP\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toUnixTimestamp(\1)', 'CASELESS,GLOBAL', 'UNIX_TIMESTAMP');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6101, 1, 6090, '\b(CURDATE|CURRENT_DATE)\(\s*\)',
   'today()', 'CASELESS,GLOBAL', 'CURDATE');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6102, 1, 6090, '\bYEAR\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toYear(\1)', 'CASELESS,GLOBAL', 'YEAR');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6103, 1, 6090, '\bMONTH\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toMonth(\1)', 'CASELESS,GLOBAL', 'MONTH');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6104, 1, 6090, '\bDAYOFMONTH\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toDayOfMonth(\1)', 'CASELESS,GLOBAL', 'DAYOFMONTH');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6105, 1, 6090, '\bDAY\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toDayOfMonth(\1)', 'CASELESS,GLOBAL', 'DAY');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6106, 1, 6090, '\bHOUR\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toHour(\1)', 'CASELESS,GLOBAL', 'HOUR');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6107, 1, 6090, '\bMINUTE\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toMinute(\1)', 'CASELESS,GLOBAL', 'MINUTE');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6108, 1, 6090, '\bSECOND\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toSecond(\1)', 'CASELESS,GLOBAL', 'SECOND');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6109, 1, 6090, '\bQUARTER\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toQuarter(\1)', 'CASELESS,GLOBAL', 'QUARTER');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6110, 1, 6090, '\bDATE\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'toDate(\1)', 'CASELESS,GLOBAL', 'DATE');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6111, 1, 6090, '\bDAYOFWEEK\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   '(toDayOfWeek(\1) % 7 + 1)', 'CASELESS,GLOBAL', 'DAYOFWEEK: from Sunday, 1, on');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6112, 1, 6090, '\bWEEKDAY\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   '(toDayOfWeek(\1) - 1)', 'CASELESS,GLOBAL', 'WEEKDAY: from Monday, 0, on');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6113, 1, 6090, '\bDATEDIFF\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   '(toDate(\1) - toDate(\2))', 'CASELESS,GLOBAL', 'DATEDIFF: days');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6114, 1, 6090, '\b(?:DATE_ADD|ADDDATE)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*INTERVAL\s+(-?\d+)\s+(SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|YEAR)\s*\)',
   '(\1 + INTERVAL \2 \3)', 'CASELESS,GLOBAL', 'DATE_ADD');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6115, 1, 6090, '\b(?:DATE_SUB|SUBDATE)\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*INTERVAL\s+(-?\d+)\s+(SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|YEAR)\s*\)',
   '(\1 - INTERVAL \2 \3)', 'CASELESS,GLOBAL', 'DATE_SUB');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6116, 1, 6090, '\bIFNULL\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'ifNull(\1, \2)', 'CASELESS,GLOBAL', 'IFNULL');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6117, 1, 6090, '\bGROUP_CONCAT\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\s+SEPARATOR\s+(''[^'']*'')\s*\)',
   'arrayStringConcat(groupArray(toString(\1)), \2)', 'CASELESS,GLOBAL', 'GROUP_CONCAT with a separator');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6118, 1, 6090, '\bGROUP_CONCAT\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'arrayStringConcat(groupArray(toString(\1)), '','')', 'CASELESS,GLOBAL', 'GROUP_CONCAT');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6119, 1, 6090, '\bABS\(',
   'abs(', 'CASELESS,GLOBAL', 'ABS: names of functions have small letters');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6120, 1, 6090, '\bGREATEST\(',
   'greatest(', 'CASELESS,GLOBAL', 'GREATEST: names of functions have small letters');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6121, 1, 6090, '\bLEAST\(',
   'least(', 'CASELESS,GLOBAL', 'LEAST: names of functions have small letters');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6122, 1, 6090, '\bMOD\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'modulo(\1, \2)', 'CASELESS,GLOBAL', 'MOD');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6123, 1, 6090, '\bLOCATE\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'position(\2, \1)', 'CASELESS,GLOBAL', 'LOCATE: ClickHouse''s own has its arguments the other way round');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6124, 1, 6090, '\bLEFT\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*(\d+)\s*\)',
   'substring(\1, 1, \2)', 'CASELESS,GLOBAL', 'LEFT');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6125, 1, 6090, '\bRIGHT\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+),\s*(\d+)\s*\)',
   'substring(\1, -\2)', 'CASELESS,GLOBAL', 'RIGHT');
INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_pattern, replace_pattern, re_modifiers, comment) VALUES
  (6126, 1, 6090, '\bTRIM\(\s*((?:[^(),'']|''[^'']*''|\((?:[^()'']|''[^'']*''|\([^()]*\))*\))+)\)',
   'replaceRegexpAll(\1, ''^ +| +$'', '''')', 'CASELESS,GLOBAL', 'TRIM');
LOAD MYSQL QUERY RULES TO RUNTIME;
