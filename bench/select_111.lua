-- The workload of the oldest document (A102, A104): one statement without a table, again and again.

function thread_init()
   connection = sysbench.sql.driver():connect()
end

function event()
   connection:query("SELECT 111")
end

function thread_done()
   connection:disconnect()
end
