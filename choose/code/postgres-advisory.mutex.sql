set lock_timeout = '{wait_ms}ms';  -- error 55P03: not granted in time
select pg_advisory_lock(hashtextextended('NAME', 0));  -- a connection of its own for each client
reset lock_timeout;
-- work
select pg_advisory_unlock(hashtextextended('NAME', 0));
