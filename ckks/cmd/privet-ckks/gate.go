package main

import (
	"bufio"
	"encoding/json"
	"io"
	"runtime"
	"sync"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// order is a line of standard input from whoever shares out the machine: a permit for a session's work on so many processors,
// a refusal, or that the session is over.
type order struct {
	Session uint64 `json:"session"`
	Cores   int    `json:"cores"`
	Refused string `json:"refused"`
	// Busy says that the same may be given later.
	Busy bool `json:"busy"`
	Gone bool `json:"gone"`
}

// gate asks for a permit by an event "ask" on standard output, waits for the order that answers it, and says by an event "leave"
// that the work is over. The process computes on as many processors as its sessions have been given together.
type gate struct {
	mutex    sync.Mutex
	sessions map[uint64]*sessionState
	cores    int
	// over says that there are no more orders.
	over bool
}

// sessionState is what the gate keeps of a session.
type sessionState struct {
	answers chan order
	gone    chan struct{}
	over    bool
}

func newGate() *gate { return &gate{sessions: map[uint64]*sessionState{}} }

// readOrders carries out orders until the reader ends; then all sessions are over.
func (g *gate) readOrders(orders io.Reader) {
	defer g.end()
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			emit("failed", failure(err))
			return
		}
		g.carryOut(o)
	}
}

func (g *gate) carryOut(o order) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	t := g.sessions[o.Session]
	if t == nil {
		return // it has asked for nothing, or ended
	}
	if o.Gone {
		t.end()
		return
	}
	select {
	case t.answers <- o:
	default: // nobody asked
	}
}

func (g *gate) end() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.over = true
	for _, t := range g.sessions {
		t.end()
	}
}

func (t *sessionState) end() {
	if !t.over {
		t.over = true
		close(t.gone)
	}
}

// session is the state of a session, made where there is none.
func (g *gate) session(number uint64) *sessionState {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	t := g.sessions[number]
	if t == nil {
		t = &sessionState{answers: make(chan order, 1), gone: make(chan struct{})}
		g.sessions[number] = t
		if g.over {
			t.end()
		}
	}
	return t
}

// Enter implements session.Gate.
func (g *gate) Enter(c *channel.Channel, work session.Work) (*session.Permit, error) {
	t := g.session(c.Session())
	emit("ask", map[string]any{"session": c.Session(), "work": work})
	select {
	case o := <-t.answers:
		if o.Refused != "" {
			return nil, refusal(o)
		}
		g.lend(o.Cores)
		begun := time.Now()
		return &session.Permit{Gone: t.gone, Release: func(err error) {
			g.lend(-o.Cores)
			fields := map[string]any{"session": c.Session(), "work": work, "seconds": time.Since(begun).Seconds()}
			if err != nil {
				fields["error"] = channel.Unquoted(err)
			}
			emit("leave", fields)
		}}, nil
	case <-t.gone:
		return nil, &session.Refusal{Reason: channel.Busy, Text: "the session is over"}
	}
}

func refusal(o order) error {
	if o.Busy {
		return &session.Refusal{Reason: channel.Busy, Text: o.Refused}
	}
	return &session.Refusal{Reason: channel.BadRequest, Text: o.Refused}
}

// lend changes how many processors the process computes on; between evaluations it needs one to talk.
func (g *gate) lend(cores int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.cores += cores
	runtime.GOMAXPROCS(max(1, g.cores))
}

// Gone implements cohort.Gate.
func (g *gate) Gone(c *channel.Channel) <-chan struct{} { return g.session(c.Session()).gone }

// follow tells of a server's events, and forgets sessions that have left.
func (g *gate) follow(event session.Event) {
	if event.Kind == "left" {
		g.forget(event.Session)
	}
	emitEvent(event)
}

// forget drops a session that has left.
func (g *gate) forget(number uint64) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	delete(g.sessions, number)
}
