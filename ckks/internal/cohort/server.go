package cohort

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/session"
)

// Gate gives permits for a client's keys and evaluation.
type Gate interface {
	session.Gate
	// Gone is closed when whoever is at the other end of a relayed channel has left.
	Gone(c *channel.Channel) <-chan struct{}
}

// Server is the process of a cohort's coordinator: members wait in it, one of each number, and whoever comes as a client gets one
// inference, with all of them. Members come again for the next one.
type Server struct {
	Setup   *Setup
	Timeout time.Duration
	// Gate permits a client's inference only when all members wait. Without one, as many seconds as Timeout says are waited for
	// members.
	Gate Gate
	// Notify is called with members that wait ("waits"), and of what a session.Server tells of.
	Notify func(session.Event)

	allowances session.Allowances
	mutex      sync.Mutex
	waiting    map[int]*seat
	changed    chan struct{}
	// coordinate is Coordinate, but for tests.
	coordinate func(*Setup, []*channel.Channel, *channel.Channel, *Course) error
}

// seat is a member that waits for an inference. It leaves the server's seats when it is taken, another connection of the same
// member replaces it, or it goes.
type seat struct {
	link *channel.Channel
	// left is closed when the seat was replaced, or the inference that took it is over.
	left chan struct{}
}

// connections are the members' links of one inference.
type connections struct {
	members []*channel.Channel
	seats   []*seat
}

// moreSessions is how many connections there may be beside two of each member.
const moreSessions = 16

// Run accepts members and clients until the listener is closed; then those that wait are let go.
func (s *Server) Run(listener *channel.Listener) error {
	s.mutex.Lock()
	s.waiting, s.changed = map[int]*seat{}, make(chan struct{})
	s.mutex.Unlock()
	refused := func(address string, err error) { s.Notify(session.Event{Kind: "failed", Peer: address, Err: err}) }
	return listener.Serve(2*s.Setup.Members+moreSessions, s.Timeout, s.serve, refused, s.dismiss)
}

func (s *Server) serve(c *channel.Channel) {
	err := s.answer(c)
	if err != nil {
		s.notify(c, session.Event{Kind: "failed", Err: err})
	}
	if s.Gate != nil {
		s.notify(c, session.Event{Kind: "left"})
	}
	if err != nil {
		session.GiveUp(c, forPeer(err))
	}
}

func (s *Server) notify(c *channel.Channel, event session.Event) {
	event.Peer, event.Session, event.Model = c.Peer(), c.Session(), s.Setup.Program.Model
	s.Notify(event)
}

// forPeer is what a client is sent of an error that a member is to blame for.
func forPeer(err error) error {
	var blamed *memberError
	if errors.As(err, &blamed) {
		return session.Refuse(channel.Busy, "member %d of the cohort left, or broke the protocol: ask again", blamed.member)
	}
	return err
}

// answer does what a party has come for.
func (s *Server) answer(c *channel.Channel) error {
	if err := session.Greet(c); err != nil {
		return err
	}
	text, err := c.ReceiveUpTo(maxHello)
	if err != nil {
		return err
	}
	var h hello
	if err := json.Unmarshal(text, &h); err != nil {
		return session.Refuse(channel.BadRequest, "the introduction is not readable")
	}
	if err := s.Setup.admit(c, h); err != nil {
		return err
	}
	if h.Role == roleMember {
		s.wait(c, h.Member)
		return nil
	}
	return s.infer(c)
}

// admit checks how a party introduces itself, a member by the name in its certificate.
func (s *Setup) admit(c *channel.Channel, h hello) error {
	switch {
	case h.Role == roleMember && c.PeerName() != memberName(h.Member):
		return session.Refuse(channel.BadRequest, "the certificate of %q is not that of member %d", c.PeerName(), h.Member)
	case h.Program != s.Program.Hash || h.Members != s.Members:
		return session.Refuse(channel.BadRequest, "this cohort has %d members and program %.16s", s.Members, s.Program.Hash)
	case h.Light != s.Light:
		return session.Refuse(channel.NotAllowed, "the results of this cohort are flooded %s: all its parties must ask for that", flooding(s.Light))
	case h.Role == roleClient, h.Role == roleMember && h.Member >= 0 && h.Member < s.Members:
		return nil
	}
	return session.Refuse(channel.BadRequest, "there is no such party")
}

func flooding(light bool) string {
	if light {
		return "lightly (--flooding light)"
	}
	return "statistically (--flooding statistical)"
}

// wait keeps a member until it has taken part in an inference, has left, or came once more.
func (s *Server) wait(c *channel.Channel, member int) {
	own := &seat{c, make(chan struct{})}
	var gone <-chan struct{}
	if s.Gate != nil {
		// Whoever is told that the member waits may answer at once that it has left.
		gone = s.Gate.Gone(c)
	}
	s.mutex.Lock()
	if s.waiting == nil {
		s.mutex.Unlock()
		return // all were let go
	}
	if before := s.waiting[member]; before != nil {
		close(before.left)
	}
	s.waiting[member] = own
	close(s.changed)
	s.changed = make(chan struct{})
	// Told in the order in which connections of a member take its seat.
	s.notify(c, session.Event{Kind: "waits"})
	s.mutex.Unlock()
	select {
	case <-own.left:
		return
	case <-gone:
	}
	s.mutex.Lock()
	still := s.waiting[member] == own
	if still {
		delete(s.waiting, member)
	}
	s.mutex.Unlock()
	if !still {
		<-own.left // the inference that has it finds the link broken
	}
}

// dismiss lets all go that wait, and keeps nobody who comes later.
func (s *Server) dismiss() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, it := range s.waiting {
		close(it.left)
	}
	s.waiting = nil
}

// take has all members take part in an inference for a client.
func (s *Server) take(c *channel.Channel) (*connections, error) {
	patience := s.Timeout
	if s.Gate != nil {
		patience = 0
	}
	limit := time.After(patience)
	for {
		s.mutex.Lock()
		if len(s.waiting) == s.Setup.Members {
			taken := &connections{}
			for member := range s.Setup.Members {
				it := s.waiting[member]
				taken.members, taken.seats = append(taken.members, it.link), append(taken.seats, it)
			}
			clear(s.waiting)
			s.mutex.Unlock()
			return taken, nil
		}
		missing, changed := s.missing(), s.changed
		s.mutex.Unlock()
		select {
		case <-changed:
		case <-limit:
			s.tellAgain()
			return nil, session.Refuse(channel.Busy, "%s of the cohort has not come: try again later", missing)
		}
	}
}

// tellAgain says once more who waits: whoever gave the permit takes them for busy.
func (s *Server) tellAgain() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, it := range s.waiting {
		s.notify(it.link, session.Event{Kind: "waits"})
	}
}

// missing names who does not wait.
func (s *Server) missing() string {
	var names []string
	for member := range s.Setup.Members {
		if s.waiting[member] == nil {
			names = append(names, fmt.Sprintf("member %d", member))
		}
	}
	return strings.Join(names, ", ")
}

// end closes the members' links; with an error, they are sent that the inference failed.
func (c *connections) end(err error) {
	for member, link := range c.members {
		if err != nil {
			link.Abort(channel.Internal, "the inference failed at another party or at the coordinator")
		}
		link.Close()
		close(c.seats[member].left)
	}
}

// infer runs one inference for a client. Processors are taken for the keys, and again for the evaluation.
func (s *Server) infer(c *channel.Channel) (err error) {
	if err := s.allowances.Take(c.Peer(), c.PerMinute(), time.Now()); err != nil {
		return err
	}
	release, _, err := s.enter(c, session.WorkKeys)
	if err != nil {
		return err
	}
	defer func() { release(err) }()
	taken, err := s.take(c)
	if err != nil {
		return err
	}
	defer func() { taken.end(err) }()
	offline := session.Begin(nil)
	var online session.Meter
	var layers []evaluate.Step
	course := Course{Step: func(step evaluate.Step) { layers = append(layers, step) }}
	course.Prepared = func() {
		release(nil)
		release = func(error) {}
		s.notify(c, session.Event{Kind: "prepared", Cost: offline.End()})
		online = session.Begin(nil)
	}
	course.Evaluate = func() (err error) {
		release, course.Stop, err = s.enter(c, session.WorkInference)
		return err
	}
	coordinate := Coordinate
	if s.coordinate != nil {
		coordinate = s.coordinate
	}
	err = coordinate(s.Setup, taken.members, c, &course)
	if errors.Is(err, evaluate.ErrStopped) {
		return session.Refuse(channel.Busy, "the service stopped the inference: it was cancelled, or took too long")
	}
	if err != nil {
		return err
	}
	s.notify(c, session.Event{Kind: "inferred", Cost: online.End(), Layers: layers})
	return nil
}

// enter waits for a permit for work, and gives what returns it, and what is closed when nobody waits for the work.
func (s *Server) enter(c *channel.Channel, work session.Work) (func(error), <-chan struct{}, error) {
	if s.Gate == nil {
		return func(error) {}, nil, nil
	}
	permit, err := s.Gate.Enter(c, work)
	if err != nil {
		return func(error) {}, nil, err
	}
	return permit.Release, permit.Gone, nil
}
