//go:build !js

package session

import (
	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// handOut makes a key for one client and sends the model encrypted under it, with what evaluating it takes: the offline
// phase of scenario 2.
func (s *Server) handOut(c *channel.Channel, served *Served) (*secret.Key, error) {
	meter := Begin(c)
	if err := c.Send([]byte{1}); err != nil {
		return nil, err
	}
	key, err := secret.New(served.params)
	if err != nil {
		return nil, err
	}
	if err := sendKeys(c, key, served.Plan); err != nil {
		return nil, err
	}
	sender := Sender{Params: served.params, Batch: served.Plan.Batch, Channel: c, Seal: key.Seal}
	if _, err := evaluate.Assemble(served.full, served.Plan, served.params, sender); err != nil {
		return nil, err
	}
	s.Notify(Event{Kind: "prepared", Peer: c.Peer(), Model: served.Program.Model, Cost: meter.End()})
	return key, nil
}

// open decrypts a group's results for the client, which has masked them: the server sees uniform values. Its noise keeps
// the client, which knows the ciphertexts, from learning the key.
func (s *Server) open(c *channel.Channel, served *Served, key *secret.Key) error {
	meter := Begin(c)
	outputs := served.outputs()
	if !key.Opens(len(outputs)) {
		return refuse(channel.BadRequest, "the budget of decryptions under this key is spent: a new session has a new key")
	}
	if err := c.Send([]byte{1}); err != nil {
		return err
	}
	level := served.Plan.Set.Floor()
	for _, index := range outputs {
		data, err := c.Receive(wire.ResultBytes(served.params, level))
		if err != nil {
			return err
		}
		ct, err := wire.ReadResult(data, served.params, level)
		if err != nil {
			return channel.Misbehaviour("a result: " + err.Error())
		}
		opened, err := key.Open(ct, flood.New(served.Plan.FloodDeviation(index), served.Plan.Period(index)))
		if err != nil {
			return err
		}
		if err := c.Send(opened); err != nil {
			return err
		}
	}
	s.Notify(Event{Kind: "inferred", Peer: c.Peer(), Model: served.Program.Model, Cost: meter.End()})
	return nil
}
