session, err := concurrency.NewSession(client, concurrency.WithTTL({ttl_s}))
if err != nil { return err }
defer session.Close()
election := concurrency.NewElection(session, name)
if err := election.Campaign(ctx, id); err != nil { return err } // returns when this client leads
work(election.Rev(), session.Done()) // the fencing number; Done: another may lead, so stop at once
return election.Resign(context.Background())
