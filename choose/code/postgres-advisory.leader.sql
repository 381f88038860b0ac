set lock_timeout = 0;
select pg_advisory_lock(hashtextextended('NAME', 0));  -- returns when this client leads
-- work; meanwhile "select 1" on this connection each second: on an error, stop to lead
