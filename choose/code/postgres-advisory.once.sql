select pg_try_advisory_lock(hashtextextended('NAME', 0));  -- false: another client runs it: skip all
create table if not exists job_done (job text, day date, primary key (job, day));
select 1 from job_done where job = 'NAME' and day = current_date;  -- a row: it has run: only unlock
-- work
insert into job_done values ('NAME', current_date);  -- best in the transaction of the work
select pg_advisory_unlock(hashtextextended('NAME', 0));  -- finally: after a grant, whatever happened
