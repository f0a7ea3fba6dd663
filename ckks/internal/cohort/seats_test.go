package cohort

import (
	"net"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// door tells a server that a member has gone, to whoever asked before it was said.
type door struct{ gone chan struct{} }

func (d *door) Enter(*channel.Channel, session.Work) (*session.Permit, error) {
	panic("no inference is run")
}

func (d *door) Gone(*channel.Channel) <-chan struct{} {
	d.gone = make(chan struct{})
	return d.gone
}

// waits has a member wait at a server, and fails unless it is let go.
func waits(t *testing.T, server *Server) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	done := make(chan struct{})
	go func() {
		server.wait(channel.Over(here, time.Second), 0)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the member keeps its seat")
	}
	if len(server.waiting) > 0 {
		t.Error("its seat is taken")
	}
}

func TestAMemberThatLeftAsItSatDownKeepsNoSeat(t *testing.T) {
	s, d := newStage(t, shallow(2), 2), &door{}
	server := s.server(t, patience)
	server.Gate, server.waiting, server.changed = d, map[int]*seat{}, make(chan struct{})
	server.Notify = func(event session.Event) {
		if event.Kind == "waits" && d.gone != nil {
			close(d.gone) // as the gate does with the order that answers
		}
	}
	waits(t, server)
}

func TestAMemberThatComesAfterTheLastIsLetGo(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	server := s.server(t, patience)
	s.listener.Close()
	if err := server.Run(s.listener); err != nil {
		t.Fatal(err)
	}
	waits(t, server)
}
