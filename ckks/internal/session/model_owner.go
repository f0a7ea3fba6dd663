//go:build !js

package session

import (
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// provideModel makes a key for one client and sends what evaluating a model under it takes and, unless each run gets it layer by
// layer, the encrypted model: the offline phase of scenario 2.
func (s *Server) provideModel(c *channel.Channel, layers bool) (*secret.Key, error) {
	meter, served := Begin(c), s.Served
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	p := served.Plan
	key, err := secret.ForRuns(served.Params, p.Runs(), len(served.Outputs()), p.Refreshes())
	if err != nil {
		return nil, err
	}
	if err := sendKeys(c, key, served.Plan); err != nil {
		return nil, err
	}
	if !layers {
		if _, err := evaluate.Assemble(served.full, served.Plan, served.Params, sender(c, served, key)); err != nil {
			return nil, err
		}
	}
	s.notify(c, Event{Kind: "prepared", Model: served.Program.Model, Cost: meter.End()})
	return key, nil
}

// sender encrypts the parts of a model under a key and sends them.
func sender(c *channel.Channel, served *Served, key *secret.Key) Sender {
	return Sender{Params: served.Params, Batch: served.Plan.Batch, Channel: c, Seal: key.Seal}
}

// run is one evaluation of a model by a client, which has had so many values refreshed.
type run struct {
	meter     Meter
	refreshed int
	// model is what the client gets layer by layer, of which so many nodes are sent; nil if it has all.
	model *evaluate.Model
	sent  int
}

// advance sends what of the model comes until the next refresh, or the end.
func (r *run) advance(points []plan.Point, nodes int) error {
	if r.model == nil {
		return nil
	}
	if r.refreshed < len(points) {
		nodes = points[r.refreshed].Node + 1
	}
	for ; r.sent < nodes; r.sent++ {
		if err := r.model.Make(); err != nil {
			return err
		}
	}
	return nil
}

// help does what a client that evaluates the model asks for: "run" begins an evaluation where the plan refreshes values,
// "refresh" and, once all are, "decrypt" follow.
func (s *Server) help(c *channel.Channel, state *clientState, what string) error {
	served := s.Served
	points, nodes := served.Plan.Points(), len(served.Network.Nodes)
	begun := func() error { return nil }
	if what == "run" || (state.run == nil && len(points) == 0 && !state.layers) {
		if !state.key.BeginRun() {
			return Refuse(channel.BadRequest, "the budget of decryptions under this key is spent: a new session has a new key")
		}
		if err := s.allowances.Take(c.Peer(), c.PerMinute(), time.Now()); err != nil {
			return err
		}
		state.run = &run{meter: Begin(c)}
		if state.layers {
			state.run.model = evaluate.Stream(served.full, served.Plan, served.Params, sender(c, served, state.key))
		}
		if what == "run" {
			begun = func() error {
				if err := c.Send([]byte{1}); err != nil {
					return err
				}
				return state.run.advance(points, nodes)
			}
		}
		if err := s.during(c, WorkInference, begun); err != nil {
			return err
		}
	}
	if state.run == nil {
		return Refuse(channel.BadRequest, "a run of the model comes before its refreshes and its results")
	}
	switch done := state.run.refreshed; {
	case what == "run":
		return nil
	case what == "refresh" && done == len(points):
		return Refuse(channel.BadRequest, "all %d refreshes of this run are done: the plan has no other", done)
	case what == "refresh":
		return s.refresh(c, state, points[done], func() error {
			state.run.refreshed++
			return state.run.advance(points, nodes)
		})
	case done < len(points):
		return Refuse(channel.BadRequest, "results come after %d refreshes, and there were %d", len(points), done)
	}
	if err := s.decrypt(c, state.key); err != nil {
		return err
	}
	s.notify(c, Event{Kind: "inferred", Model: served.Program.Model, Cost: state.run.meter.End()})
	state.run = nil
	return nil
}

// refresh is the owner's part in refreshing a value, all of its ciphertexts at once; `after` follows under the same permit.
func (s *Server) refresh(c *channel.Channel, state *clientState, point plan.Point, after func() error) error {
	served := s.Served
	floor, period := served.Plan.Floor, served.Plan.Period(point.Node)
	masked := make([]*rlwe.Ciphertext, served.Plan.Layouts[point.Node].Ciphertexts)
	read := func(data []byte) (*rlwe.Ciphertext, error) {
		return wire.ReadMasked(data, served.Params, floor, period)
	}
	for i := range masked {
		var err error
		if masked[i], err = receive(c, "a value to refresh", wire.MaskedBytes(served.Params, floor, period), read); err != nil {
			return err
		}
	}
	noise := flood.New(served.Plan.RefreshDeviation(point.Node, point.Value), period)
	return s.during(c, WorkStep, func() error {
		for _, ct := range masked {
			if err := c.Deliver(state.key.Refresh(ct, point.Level, noise)); err != nil {
				return err
			}
		}
		return after()
	})
}

// decrypt decrypts a group's results for the client, which has masked them: the server sees uniform values. Its noise keeps
// the client, which knows the ciphertexts, from learning the key.
func (s *Server) decrypt(c *channel.Channel, key *secret.Key) error {
	served := s.Served
	if err := c.Send([]byte{1}); err != nil {
		return err
	}
	level := served.Plan.Set.Floor()
	for _, index := range served.Outputs() {
		ct, err := ReceiveResult(c, "a result", served.Params, level)
		if err != nil {
			return err
		}
		err = s.during(c, WorkStep, func() error {
			return c.Deliver(key.Open(ct, flood.New(served.Plan.FloodDeviation(index), served.Plan.Period(index))))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
