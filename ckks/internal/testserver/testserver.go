//go:build !js

// Package testserver serves small programs within a test.
package testserver

import (
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// Patience is how long such a server waits for a message.
const Patience = 20 * time.Second

// Run serves a program to whoever comes to a listener, until the test ends, and gives what the server notifies.
func Run(t *testing.T, listener *channel.Listener, public, private []byte, terms session.Terms) chan session.Event {
	t.Helper()
	return RunBehind(t, nil, listener, public, private, terms)
}

// RunBehind is Run behind a gate, if it is not nil.
func RunBehind(t *testing.T, gate session.Gate, listener *channel.Listener, public, private []byte, terms session.Terms) chan session.Event {
	t.Helper()
	served, err := session.Serve(public, private, terms, 0)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan session.Event, 256)
	server := &session.Server{
		Served: served, Timeout: Patience, Gate: gate,
		Notify: func(e session.Event) { events <- e },
	}
	done := make(chan error, 1)
	go func() { done <- server.Run(listener) }()
	t.Cleanup(func() {
		listener.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return events
}
