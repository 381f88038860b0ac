session, err := concurrency.NewSession(client, concurrency.WithTTL({ttl_s}))
if err != nil { return err }
defer session.Close()
mutex := concurrency.NewMutex(session, name)
ctx, cancel := context.WithTimeout(context.Background(), {wait_ms}*time.Millisecond)
defer cancel()
if err := mutex.Lock(ctx); err != nil { return err }
work(mutex.Header().Revision, session.Done()) // the fencing number; Done: the lock is lost, so stop
return mutex.Unlock(context.Background())
