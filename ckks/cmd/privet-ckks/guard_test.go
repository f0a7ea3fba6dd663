package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

func TestVerdictsAnswerTheirQuestionsAndTheEndRefusesTheRest(t *testing.T) {
	for line, expected := range map[string]*session.Refusal{
		`{"guard":1}`: nil,
		`{"guard":1,"refused":"later","busy":true}`:     {Reason: channel.Busy, Text: "later"},
		`{"guard":1,"refused":"exact alone is served"}`: {Reason: channel.NotAllowed, Text: "exact alone is served"},
		`{"guard":7}`: {Reason: channel.Busy, Text: "this server stops"},
		`no verdict`:  {Reason: channel.Busy, Text: "this server stops"},
	} {
		here, there := net.Pipe()
		link, g := channel.Over(here, time.Second), newGuard()
		verdicts, parent := io.Pipe()
		go g.readOrders(verdicts)
		done := make(chan error, 1)
		go func() { done <- g.ask(link, 1) }()
		for asked := false; !asked; time.Sleep(time.Millisecond) {
			g.mutex.Lock()
			asked = g.last == 1
			g.mutex.Unlock()
		}
		io.WriteString(parent, line+"\n")
		parent.Close()
		err := <-done
		var refused *session.Refusal
		if errors.As(err, &refused) != (expected != nil) || (expected != nil && *refused != *expected) {
			t.Errorf("%s: %v", line, err)
		}
		here.Close()
		there.Close()
	}
}
