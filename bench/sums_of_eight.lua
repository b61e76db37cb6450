-- Eight rows by their keys and one sum of them: a sharded table has them in several partitions (bench/shards.py).

sysbench.cmdline.options = {
   ["table-size"] = {"Number of rows", 20000}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
end

function event()
   local keys = {}
   for at = 1, 8 do
      keys[at] = sysbench.rand.uniform(1, sysbench.opt.table_size)
   end
   connection:query("SELECT SUM(k) FROM sbtest1 WHERE id IN (" .. table.concat(keys, ",") .. ")")
end

function thread_done()
   connection:disconnect()
end
