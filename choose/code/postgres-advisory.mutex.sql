begin;
set local lock_timeout = '{wait_ms}ms';  -- error 55P03: not granted in time: roll back
select pg_advisory_lock(hashtextextended('NAME', 0));  -- a connection of its own for each client
commit;
-- work
select pg_advisory_unlock(hashtextextended('NAME', 0));  -- finally: also if the work fails
