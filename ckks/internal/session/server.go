//go:build !js

package session

import (
	"errors"
	"sync"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// Event is something that a server did for a client: "prepared", "inferred", "failed" with an error, or, with a gate, "left" at
// the end of its session.
type Event struct {
	Kind string
	Peer string
	// Session is the relay's number, see channel.Session.
	Session uint64
	Model   string
	Cost    Cost
	Layers  []evaluate.Step
	Err     error
}

// Work is what a client needs processors and memory for.
type Work string

// Kinds of work. A client's keys, or what it gets an encrypted model under, take memory until its session ends. In scenario 2
// an inference begins with WorkInference, and each refresh and decryption in it is a WorkStep.
const (
	WorkKeys      Work = "keys"
	WorkInference Work = "infer"
	WorkStep      Work = "step"
)

// Gate gives permits for processors and memory, from whoever shares them out among all that runs on the machine.
type Gate interface {
	// Enter waits for a permit; a Refusal says why there is none.
	Enter(c *channel.Channel, work Work) (*Permit, error)
}

// Permit is permission to work.
type Permit struct {
	// Gone is closed when the client has left, or its time is over: then nobody waits for the result.
	Gone <-chan struct{}
	// Release gives the processors back, and says with what error the work ended, nil if it was done. The memory of keys stays
	// taken until the event "left".
	Release func(error)
}

// Server answers clients. Without a gate evaluations run one at a time, each on all processors; keys of a limited number of
// clients are held at once.
type Server struct {
	Served  *Served
	Timeout time.Duration
	// Limit is the most resident memory in bytes, 0 for none: a client whose keys do not fit is told to come back.
	Limit  int64
	Notify func(Event)
	// Gate is nil where a server has its machine for itself.
	Gate Gate

	evaluating sync.Mutex
	allowances Allowances
	admission  sync.Mutex
	held       int64
}

// maxSessions bounds sessions at a time.
const maxSessions = 16

// Run accepts clients until the listener is closed.
func (s *Server) Run(listener *channel.Listener) error {
	refused := func(address string, err error) { s.Notify(Event{Kind: "failed", Peer: address, Err: err}) }
	return listener.Serve(maxSessions, s.Timeout, s.serve, refused, func() {})
}

func (s *Server) serve(c *channel.Channel) {
	err := s.serveRequests(c)
	if err != nil {
		s.notify(c, Event{Kind: "failed", Err: err})
	}
	if s.Gate != nil {
		// Keys and what was computed with them are free from here on.
		s.notify(c, Event{Kind: "left"})
	}
	if err != nil {
		GiveUp(c, err)
	}
}

func (s *Server) notify(c *channel.Channel, event Event) {
	event.Peer, event.Session = c.Peer(), c.Session()
	s.Notify(event)
}

// clientState is what a server keeps for one client.
type clientState struct {
	// keys are the client's, to evaluate with; key is the server's own, under which the client has the model.
	keys *received
	key  *secret.Key
	// layers says that each run gets the model layer by layer.
	layers bool
	// run is the run of the model that the client is in, nil between two.
	run *run
	// handed is how many ciphertexts of results went out under the client's keys.
	handed  int
	release func()
}

// serveRequests answers one client's requests, one after the other.
func (s *Server) serveRequests(c *channel.Channel) error {
	if err := Greet(c); err != nil {
		return err
	}
	state := &clientState{release: func() {}}
	defer func() { state.release() }()
	for {
		var asked request
		if err := receiveJSON(c, &asked); err != nil {
			return err
		}
		if asked.Request == "bye" {
			return nil
		}
		if err := s.answer(c, state, asked); err != nil {
			return err
		}
	}
}

func (s *Server) answer(c *channel.Channel, state *clientState, asked request) error {
	served := s.Served
	switch asked.Request {
	case "describe":
		if asked.Scenario != served.Terms.Scenario {
			return Refuse(channel.BadRequest, "%s is offered in scenario %s here", served.Program.Model, served.Terms.Scenario)
		}
		if err := sendJSON(c, served.Terms); err != nil {
			return err
		}
		return c.Send(served.Public)
	case "keys", "model":
		return s.begin(c, state, asked)
	case "infer":
		if state.keys == nil || served.Program.Hash != asked.Program {
			return Refuse(channel.BadRequest, "keys for this program come before data")
		}
		if err := s.allowances.Take(c.Peer(), c.PerMinute(), time.Now()); err != nil {
			return err
		}
		_, results := served.Plan.Ciphertexts()
		if state.handed += results; served.Terms.Statistical && state.handed > served.Plan.Budget {
			return Refuse(channel.BadRequest, "the budget of results under these keys is spent: a new session has new keys")
		}
		return s.infer(c, state.keys)
	case "run", "refresh", "decrypt":
		if state.key == nil || served.Program.Hash != asked.Program {
			return Refuse(channel.BadRequest, "the model comes before its results")
		}
		return s.help(c, state, asked.Request)
	}
	return Refuse(channel.BadRequest, "there is no such request")
}

// begin is the offline phase of either scenario.
func (s *Server) begin(c *channel.Channel, state *clientState, asked request) error {
	state.release()
	*state = clientState{release: func() {}}
	release, err := s.admit(asked)
	if err != nil {
		return err
	}
	state.release = release
	if terms := s.Served.Terms; (asked.Request == "model") != (terms.Scenario == EncryptedModel) {
		return Refuse(channel.BadRequest, "%s is offered in scenario %s here", s.Served.Program.Model, terms.Scenario)
	}
	return s.during(c, WorkKeys, func() error {
		if asked.Request == "model" {
			state.layers = asked.Layers
			state.key, err = s.provideModel(c, state.layers)
		} else {
			state.keys, err = s.prepare(c)
		}
		return err
	})
}

// admit checks that the client planned as the server did, and sets aside memory for its keys until the function that it gives is
// called.
func (s *Server) admit(asked request) (func(), error) {
	if s.Served.Program.Hash != asked.Program {
		return nil, Refuse(channel.UnknownProgram, "no such program here")
	}
	p := s.Served.Plan
	if asked.Parameters == nil || *asked.Parameters != p.Set || asked.Batch != p.Batch {
		return nil, Refuse(channel.BadRequest, "the parameters differ from this server's plan: is one side another version?")
	}
	need := s.Served.session()
	s.admission.Lock()
	defer s.admission.Unlock()
	if s.Limit > 0 && s.held > 0 && Resident()+need > s.Limit {
		return nil, Refuse(channel.Busy, "no memory for the keys of another client now")
	}
	s.held += need
	return func() {
		s.admission.Lock()
		defer s.admission.Unlock()
		s.held -= need
	}, nil
}

func (s *Server) prepare(c *channel.Channel) (*received, error) {
	meter := Begin(c)
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	keys, err := receiveKeys(c, s.Served.Plan, s.Served.Params)
	if err != nil {
		return nil, err
	}
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	s.notify(c, Event{Kind: "prepared", Model: s.Served.Program.Model, Cost: meter.End()})
	return keys, nil
}

// enter waits for a permit to evaluate: without a gate, until nobody else does.
func (s *Server) enter(c *channel.Channel) (*Permit, error) {
	if s.Gate != nil {
		return s.Gate.Enter(c, WorkInference)
	}
	s.evaluating.Lock()
	return &Permit{Release: func(error) { s.evaluating.Unlock() }}, nil
}

// during does work once there is a permit for it; without a gate there is nothing to wait for.
func (s *Server) during(c *channel.Channel, work Work, do func() error) (err error) {
	if s.Gate == nil {
		return do()
	}
	permit, err := s.Gate.Enter(c, work)
	if err != nil {
		return err
	}
	defer func() { permit.Release(err) }()
	return do()
}

func (s *Server) infer(c *channel.Channel, keys *received) error {
	meter, served := Begin(c), s.Served
	var layers []evaluate.Step
	observe := func(step evaluate.Step) { layers = append(layers, step) }
	next := func() (*rlwe.Ciphertext, error) {
		return receiveSeeded(c, "an input", served.Params, served.Params.MaxLevel())
	}
	for range served.Plan.Groups {
		inputs, err := served.Encrypted(next)
		if err != nil {
			return err
		}
		outputs, err := s.evaluate(c, keys, inputs, observe)
		if errors.Is(err, evaluate.ErrStopped) {
			return Refuse(channel.Busy, "the service stopped the inference: it was cancelled, or took too long")
		}
		if err != nil {
			return err
		}
		for _, output := range outputs {
			for _, ct := range output {
				if err := c.Deliver(wire.AppendResult(nil, served.Params, ct)); err != nil {
					return err
				}
			}
		}
	}
	s.notify(c, Event{Kind: "inferred", Model: served.Program.Model, Cost: meter.End(), Layers: layers})
	return nil
}

// evaluate evaluates one group, whose inputs are there, so that no processor waits for the client.
func (s *Server) evaluate(
	c *channel.Channel, keys *received, inputs []evaluate.Values, observe func(evaluate.Step),
) (outputs []evaluate.Values, err error) {
	permit, err := s.enter(c)
	if err != nil {
		return nil, err
	}
	defer func() { permit.Release(err) }()
	served := s.Served
	hider, err := evaluate.NewHider(served.Params, served.Plan, keys.zero)
	if err != nil {
		return nil, err
	}
	help := evaluate.Helpers{Hiding: hider, Refresher: keys.refresher, Stop: permit.Gone}
	return served.model.Run(keys.evaluator, help, inputs, observe)
}
