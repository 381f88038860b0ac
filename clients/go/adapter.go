// What the Go adapters share: reads requests, carries each on a goroutine, and writes the answers.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
)

type request struct {
	ID, Of, Client int
	Do, Key        string
	TTLMs          int64 `json:"ttl_ms"`
	WaitMs         int64 `json:"wait_ms"`
	Stores         map[string]string
	ctx            context.Context // ends if it is cancelled
}

type answer map[string]interface{}

func failed(err error, definite bool) answer {
	return answer{"outcome": "failed", "definite": definite, "reason": err.Error()}
}

// serve answers hello with about; connect makes a client, a function that answers its requests. It must not wait.
func serve(about answer, connect func(hello request) func(request) answer) {
	requests, answers, writes := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout), sync.Mutex{}
	os.Stdout = os.Stderr // what a library prints must not stand among the answers
	var hello request
	clients, pending := map[int]func(request) answer{}, sync.Map{}
	for ask := (request{}); requests.Decode(&ask) == nil; ask = (request{}) {
		ctx, cancel := context.WithCancel(context.Background())
		pending.Store(ask.ID, cancel)
		ask.ctx = ctx
		answered := func(request) answer { return answer{} } // also an echo
		if stop, is := pending.Load(ask.Of); ask.Do == "cancel" && is {
			stop.(context.CancelFunc)()
		} else if ask.Do == "hello" {
			hello = ask
			answered = func(request) answer { return about }
		} else if ask.Do != "cancel" && ask.Do != "echo" {
			if clients[ask.Client] == nil {
				clients[ask.Client] = connect(hello)
			}
			answered = clients[ask.Client]
		}
		if ask.Do == "close" {
			delete(clients, ask.Client)
		}
		go func(ask request) {
			what := answered(ask)
			pending.Delete(ask.ID)
			what["id"] = ask.ID
			writes.Lock()
			defer writes.Unlock()
			answers.Encode(what)
		}(ask)
	}
}
