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
	config := clientv3.Config{DialTimeout: 5 * time.Second}
	places := strings.TrimPrefix(hello.Stores["etcd"], "etcd://")
	if at := strings.LastIndex(places, "@"); at >= 0 {
		login, _ := url.Parse("//" + places[:at+1]) // lockbench has checked it
		config.Username, places = login.User.Username(), places[at+1:]
		config.Password, _ = login.User.Password()
	}
	config.Endpoints = strings.Split(places, ",")
	etcd, err := clientv3.New(config) // does not wait
	if err != nil {
		return func(request) answer { return failed(err, true) }
	}
	var session *concurrency.Session
	mutexes := map[string]*concurrency.Mutex{}
	ended := func() bool {
		select {
		case <-session.Done():
			return true
		default:
			return false
		}
	}
	return func(ask request) answer {
		switch ask.Do {
		case "acquire":
			if session == nil || ended() {
				mutexes = map[string]*concurrency.Mutex{} // the session's end was theirs
				if session, err = concurrency.NewSession(etcd, concurrency.WithTTL(int(ask.TTLMs+999)/1000)); err != nil {
					return failed(err, true)
				}
			}
			mutex := concurrency.NewMutex(session, ask.Key)
			// The library cannot try without waiting, so it waits at least 100 ms.
			ctx, cancel := context.WithTimeout(ask.ctx, time.Duration(ask.WaitMs+100)*time.Millisecond)
			defer cancel()
			if err := mutex.Lock(ctx); err == nil {
				mutexes[ask.Key] = mutex
				return answer{"outcome": "acquired", "fencing": mutex.Header().Revision}
			} else if mutex.Key() != "\x00" || ask.ctx.Err() != nil { // "\x00": it has left the queue
				return failed(err, mutex.Key() == "\x00")
			}
			return answer{"outcome": "taken"}
		case "release":
			if mutexes[ask.Key] == nil || ended() {
				return answer{"outcome": "not_held"}
			}
			if err := mutexes[ask.Key].Unlock(ask.ctx); err != nil {
				return failed(err, false)
			}
			delete(mutexes, ask.Key)
			return answer{"outcome": "released"}
		case "held":
			return answer{"held": mutexes[ask.Key] != nil && !ended()}
		case "close":
			etcd.Close()
			return answer{}
		}
		return answer{"outcome": "unsupported"}
	}
}

func main() {
	traits := answer{"expiry": "session", "fencing": true, "reentrant": true, "renews": true, "waiting": "queue"}
	serve(answer{"name": "etcd concurrency.Mutex", "version": version.Version, "store": "etcd", "traits": traits}, connect)
}
