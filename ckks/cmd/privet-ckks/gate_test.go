package main

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// entering asks a gate for a permit, and gives what becomes of it.
func entering(t *testing.T, g *gate) chan error {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	link := channel.Over(here, time.Second)
	done := make(chan error, 1)
	asked := len(g.sessions)
	go func() {
		pass, err := g.Enter(link, session.WorkInference)
		if err == nil {
			defer pass.Release(nil)
			if runtime.GOMAXPROCS(0) != 2 {
				err = errors.New("the process computes on another number of processors")
			}
		}
		done <- err
	}()
	for range 1000 {
		g.mutex.Lock()
		known := len(g.sessions)
		g.mutex.Unlock()
		if known > asked {
			return done
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the gate heard nothing")
	return nil
}

func TestOrdersAnswerThoseWhoAsk(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for line, expected := range map[string]string{
		`{"session":0,"cores":2}`:                          "",
		`{"session":0,"refused":"no room","busy":true}`:    "no room",
		`{"session":0,"refused":"too large: 5 and not 4"}`: "too large: 5 and not 4",
		`{"session":0,"gone":true}`:                        "the session is over",
	} {
		g := newGate()
		done := entering(t, g)
		// Orders go on: their end would end the session, too.
		orders, last := io.Pipe()
		go g.readOrders(io.MultiReader(strings.NewReader(`{"session":9,"cores":4}`+"\n"+line+"\n"), orders))
		err := <-done
		last.Close()
		var refused *session.Refusal
		switch {
		case expected == "" && err != nil:
			t.Errorf("%s: %v", line, err)
		case expected != "" && (!errors.As(err, &refused) || refused.Text != expected):
			t.Errorf("%s: %v", line, err)
		case expected != "" && (refused.Reason == channel.Busy) == strings.HasPrefix(expected, "too large"):
			t.Errorf("%s: reason %d", line, refused.Reason)
		}
	}
}

func TestNobodyWaitsForOrdersThatEnded(t *testing.T) {
	g := newGate()
	before := entering(t, g)
	g.readOrders(strings.NewReader(""))
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	g.forget(0)
	after := make(chan error, 1)
	go func() {
		_, err := g.Enter(channel.Over(here, time.Second), session.WorkKeys)
		after <- err
	}()
	for _, done := range []chan error{before, after} {
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "the session is over") {
				t.Errorf("%v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("it waits for an order that never comes")
		}
	}
}
