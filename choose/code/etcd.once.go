session, err := concurrency.NewSession(client, concurrency.WithTTL({ttl_s}))
if err != nil { return err }
defer session.Close() // unlocks
try, cancel := context.WithTimeout(ctx, time.Second); defer cancel() // etcd 3.5 has TryLock
if err = concurrency.NewMutex(session, name).Lock(try); err != nil && try.Err() != nil { return nil } // another client runs it: skip
if err != nil { return err }
if done, err := client.Get(ctx, marker); err != nil || done.Count > 0 { return err } // such as "job:2026-11-29"
work(session.Done()) // Done: the lock is lost, so stop
_, err = client.Put(ctx, marker, "done")
return err
