// concurrency.Mutex of etcd's Go client. A client has a session of its own, which is renewed; its TTL is in whole seconds.
package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/version"
)

func connect(hello request) func(request) answer {
	all := hello.Stores["etcd"] // [scheme://][user:password@]host:port[,host:port...]
	config := clientv3.Config{DialTimeout: 5 * time.Second}
	config.Endpoints = strings.Split(all[strings.LastIndexAny(all, "@/")+1:], ",")
	first, _ := url.Parse(strings.Split(all, ",")[0]) // lockbench has checked it
	config.Username = first.User.Username()
	config.Password, _ = first.User.Password()
	var etcd *clientv3.Client
	var session *concurrency.Session
	var sessionEnds <-chan struct{}
	mutexes := map[string]*concurrency.Mutex{}
	return func(ask request) answer {
		select {
		case <-sessionEnds: // and its locks with it
			session, sessionEnds, mutexes = nil, nil, map[string]*concurrency.Mutex{}
		default:
		}
		switch ask.Do {
		case "acquire":
			var err error
			if etcd == nil {
				etcd, err = clientv3.New(config)
			}
			if err == nil && session == nil {
				session, err = concurrency.NewSession(etcd, concurrency.WithTTL(int(ask.TTLMs+999)/1000))
			}
			if err != nil {
				return failed(err, true)
			}
			sessionEnds = session.Done()
			mutex := concurrency.NewMutex(session, ask.Key)
			wait := ask.WaitMs + 100 // the library cannot try without waiting
			ctx, cancel := context.WithTimeout(ask.ctx, time.Duration(wait)*time.Millisecond)
			defer cancel()
			if err = mutex.Lock(ctx); err == nil {
				mutexes[ask.Key] = mutex
				return answer{"outcome": "acquired", "fencing": mutex.Header().Revision}
			} else if mutex.Key() != "\x00" || ask.ctx.Err() != nil { // "\x00": it has left the queue
				return failed(err, mutex.Key() == "\x00")
			}
			return answer{"outcome": "taken"}
		case "release":
			if mutexes[ask.Key] == nil {
				return answer{"outcome": "not_held"}
			}
			if err := mutexes[ask.Key].Unlock(ask.ctx); err != nil {
				return failed(err, false)
			}
			delete(mutexes, ask.Key)
			return answer{"outcome": "released"}
		case "held":
			return answer{"held": mutexes[ask.Key] != nil}
		case "close":
			if etcd != nil {
				etcd.Close()
			}
			return answer{}
		}
		return answer{"outcome": "unsupported"}
	}
}

func main() {
	traits := answer{"expiry": "session", "fencing": true, "reentrant": true, "renews": true, "waiting": "queue"}
	serve(answer{"name": "etcd concurrency.Mutex", "version": version.Version, "store": "etcd", "traits": traits}, connect)
}
