package main

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// verdict is a line of standard input: the answer to the question of this number, a refusal if there is a text.
type verdict struct {
	Guard   uint64 `json:"guard"`
	Refused string `json:"refused"`
	// Busy says that the same may be accepted later.
	Busy bool `json:"busy"`
}

// guard asks whoever started this process, who has the policy and counts answers, by an event "guard" on standard output.
type guard struct {
	mutex   sync.Mutex
	last    uint64
	waiting map[uint64]chan verdict
	over    bool
}

func newGuard() *guard { return &guard{waiting: map[uint64]chan verdict{}} }

// readOrders reads verdicts until there are no more; whoever still waits then is refused.
func (g *guard) readOrders(verdicts io.Reader) {
	lines := bufio.NewScanner(verdicts)
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			emit("failed", failure(err))
			break
		}
		g.mutex.Lock()
		if waiting := g.waiting[v.Guard]; waiting != nil {
			delete(g.waiting, v.Guard)
			waiting <- v
		}
		g.mutex.Unlock()
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.over = true
	for _, waiting := range g.waiting {
		close(waiting)
	}
	g.waiting = nil
}

// ask asks whether a client may have so many answers, or with none whether it may ask at all.
func (g *guard) ask(c *channel.Channel, answers int) error {
	g.mutex.Lock()
	if g.over {
		g.mutex.Unlock()
		return &session.Refusal{Reason: channel.Busy, Text: "this server stops"}
	}
	g.last++
	number, answer := g.last, make(chan verdict, 1)
	g.waiting[number] = answer
	g.mutex.Unlock()
	emit("guard", map[string]any{"guard": number, "client": c.Peer(), "name": c.PeerName(), "answers": answers})
	v, answered := <-answer
	switch {
	case !answered:
		return &session.Refusal{Reason: channel.Busy, Text: "this server stops"}
	case v.Refused != "" && v.Busy:
		return &session.Refusal{Reason: channel.Busy, Text: v.Refused}
	case v.Refused != "":
		return &session.Refusal{Reason: channel.NotAllowed, Text: v.Refused}
	}
	return nil
}
