package session

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
	"privet/ckks/internal/wire"
)

// Served is a program that a server offers, ready to be evaluated.
type Served struct {
	Program *program.Program
	Public  []byte
	Plan    *plan.Plan
	Network *network.Network
	Model   *evaluate.Model
}

// Serve reads both halves of a program, plans it and encodes its weights. With a limit (bytes, 0: none), a program that
// does not fit is refused with the figure before anything is encoded.
func Serve(public, private []byte, limit int64) (*Served, error) {
	parsed, err := program.Parse(public)
	if err != nil {
		return nil, err
	}
	weights, err := program.ParseWeights(private, parsed)
	if err != nil {
		return nil, err
	}
	// The plan is that of a client, which sees no weights.
	structure, err := network.Build(parsed, nil)
	if err != nil {
		return nil, err
	}
	planned, err := plan.New(structure)
	if err != nil {
		return nil, err
	}
	if need := planned.Memory().Server(); limit > 0 && need > limit {
		return nil, fmt.Errorf("serving %s takes about %d MB, more than the limit of %d MB: give more memory, or a smaller batch",
			parsed.Model, need/1e6, limit/1e6)
	}
	full, err := network.Build(parsed, weights)
	if err != nil {
		return nil, err
	}
	model, err := evaluate.NewModel(full, planned)
	if err != nil {
		return nil, err
	}
	return &Served{parsed, public, planned, full, model}, nil
}

// Event is something that a server did for a client: "prepared", "inferred", or "failed" with an error.
type Event struct {
	Kind   string
	Peer   string
	Model  string
	Cost   Cost
	Layers []Layer
	Err    error
}

// Server answers clients. Evaluations run one at a time, each on all processors; keys of a limited number of clients are
// held at once.
type Server struct {
	Programs []*Served
	Timeout  time.Duration
	// Limit is the most resident memory in bytes, 0 for none: a client whose keys do not fit is told to come back.
	Limit  int64
	Notify func(Event)

	evaluating sync.Mutex
	admission  sync.Mutex
	held       int64
}

// maxSessions bounds sessions at a time; further clients wait in the system's queue.
const maxSessions = 16

// Run accepts clients until the listener is closed.
func (s *Server) Run(listener *channel.Listener) error {
	slots := make(chan struct{}, maxSessions)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		slots <- struct{}{}
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		sessions.Go(func() {
			defer func() { <-slots }()
			s.meet(listener, raw)
		})
	}
}

func (s *Server) meet(listener *channel.Listener, raw net.Conn) {
	c, err := listener.Handshake(raw, s.Timeout)
	if err != nil {
		s.Notify(Event{Kind: "failed", Peer: raw.RemoteAddr().String(), Err: err})
		return
	}
	defer c.Close()
	if err := s.converse(c); err != nil {
		GiveUp(c, err)
		s.Notify(Event{Kind: "failed", Peer: c.Peer(), Err: err})
	}
}

// converse answers one client's requests, one after the other.
func (s *Server) converse(c *channel.Channel) error {
	if err := Greet(c); err != nil {
		return err
	}
	var (
		keys    *clientKeys
		keysOf  *Served
		release = func() {}
	)
	defer func() { release() }()
	for {
		asked, err := hear(c)
		if err != nil {
			return err
		}
		switch asked.Request {
		case "bye":
			return nil
		case "describe":
			served, err := s.named(asked.Model)
			if err != nil {
				return err
			}
			if err := c.Send(served.Public); err != nil {
				return err
			}
		case "keys":
			release()
			if keysOf, release, err = s.admit(asked); err != nil {
				release = func() {}
				return err
			}
			if keys, err = s.prepare(c, keysOf); err != nil {
				return err
			}
		case "infer":
			if keys == nil || keysOf.Program.Hash != asked.Program {
				return refuse(channel.BadRequest, "keys for this program come before data")
			}
			if err := s.infer(c, keysOf, keys); err != nil {
				return err
			}
		default:
			return refuse(channel.BadRequest, "there is no request %q", asked.Request)
		}
	}
}

func (s *Server) named(model string) (*Served, error) {
	for _, served := range s.Programs {
		if served.Program.Model == model || (model == "" && len(s.Programs) == 1) {
			return served, nil
		}
	}
	return nil, refuse(channel.UnknownProgram, "no such model here, or several and none named")
}

// admit checks that the client planned as the server did, and sets aside memory for its keys.
func (s *Server) admit(asked request) (*Served, func(), error) {
	for _, served := range s.Programs {
		if served.Program.Hash != asked.Program {
			continue
		}
		p := served.Plan
		if asked.Parameters == nil || *asked.Parameters != p.Set || asked.Batch != p.Batch {
			return nil, nil, refuse(channel.BadRequest, "the parameters differ from this server's plan: is one side another version?")
		}
		need := p.Memory().Session()
		s.admission.Lock()
		defer s.admission.Unlock()
		if s.Limit > 0 && s.held > 0 && Resident()+need > s.Limit {
			return nil, nil, refuse(channel.Busy, "no memory for the keys of another client now")
		}
		s.held += need
		return served, func() {
			s.admission.Lock()
			defer s.admission.Unlock()
			s.held -= need
		}, nil
	}
	return nil, nil, refuse(channel.UnknownProgram, "no program %.16s here", asked.Program)
}

func (s *Server) prepare(c *channel.Channel, served *Served) (*clientKeys, error) {
	meter := Begin(c)
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	keys, err := receiveKeys(c, served.Plan, served.Model.Params)
	if err != nil {
		return nil, err
	}
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	s.Notify(Event{Kind: "prepared", Peer: c.Peer(), Model: served.Program.Model, Cost: meter.End()})
	return keys, nil
}

func (s *Server) infer(c *channel.Channel, served *Served, keys *clientKeys) error {
	meter := Begin(c)
	var layers []Layer
	observe := func(step evaluate.Step) { layers = append(layers, Layer{step.Name, step.Kind, step.Seconds}) }
	for range served.Plan.Groups {
		inputs, err := receiveInputs(c, served)
		if err != nil {
			return err
		}
		outputs, err := s.evaluate(served, keys, inputs, observe)
		if err != nil {
			return err
		}
		for _, output := range outputs {
			for _, ct := range output {
				data, err := wire.AppendResult(nil, served.Model.Params, ct)
				if err != nil {
					return err
				}
				if err := c.Send(data); err != nil {
					return err
				}
			}
		}
	}
	s.Notify(Event{Kind: "inferred", Peer: c.Peer(), Model: served.Program.Model, Cost: meter.End(), Layers: layers})
	return nil
}

func (s *Server) evaluate(served *Served, keys *clientKeys, inputs []evaluate.Values, observe func(evaluate.Step)) ([]evaluate.Values, error) {
	s.evaluating.Lock()
	defer s.evaluating.Unlock()
	return served.Model.Run(keys.evaluator, keys.hider, inputs, observe)
}

func receiveInputs(c *channel.Channel, served *Served) ([]evaluate.Values, error) {
	var inputs []evaluate.Values
	params := served.Model.Params
	for index, node := range served.Network.Nodes {
		if node.Kind != network.Input {
			continue
		}
		values := make([]*rlwe.Ciphertext, served.Plan.Layouts[index].Ciphertexts)
		for i := range values {
			data, err := c.Receive(wire.SeededBytes(params, params.MaxLevel()))
			if err != nil {
				return nil, err
			}
			if values[i], err = wire.ReadSeeded(data, params, params.MaxLevel()); err != nil {
				return nil, channel.Misbehaviour("an input: " + err.Error())
			}
		}
		inputs = append(inputs, values)
	}
	return inputs, nil
}
