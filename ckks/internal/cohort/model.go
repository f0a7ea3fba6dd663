package cohort

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
	"privet/ckks/internal/wire"
)

// How the owner of a model sends it, as the coordinator says when keys are made.
const (
	atOnce       byte = 0
	layerByLayer byte = 1
)

// sendModel encrypts the model under the cohort's key, part by part in the order of evaluate.Assemble, unless flooding is
// to be statistical and would protect too little; it gives by how much it does. If the coordinator wants the model layer by
// layer, it sends nothing yet, and gives what sends the next node's parts.
func sendModel(c *channel.Channel, s *Setup, m *collective.Member, weights *program.Weights) (next func() error, bits float64, err error) {
	how, err := c.Receive(1)
	if err != nil {
		return nil, 0, err
	}
	key, err := m.CohortKey()
	if err != nil {
		return nil, 0, err
	}
	full, bits, err := s.weighed(weights)
	if err != nil {
		return nil, bits, err
	}
	if how[0] == layerByLayer {
		return evaluate.Stream(full, s.Plan, s.Params, sender(c, s, key)).Make, bits, nil
	}
	_, err = evaluate.Assemble(full, s.Plan, s.Params, sender(c, s, key))
	return nothing, bits, err
}

// CheckWeights refuses a private half that the owner of the model would refuse to evaluate.
func (s *Setup) CheckWeights(private []byte) error {
	weights, err := program.ParseWeights(private, s.Program)
	if err == nil {
		_, _, err = s.weighed(weights)
	}
	return err
}

// weighed is the network with its weights, and by how many bits flooding protects them, which must be enough.
func (s *Setup) weighed(weights *program.Weights) (full *network.Network, bits float64, err error) {
	if full, err = network.Build(s.Program, weights); err != nil {
		return nil, 0, err
	}
	full = s.Plan.Arrange(full.WithBareSquares())
	if s.Plan.Holders > 0 {
		scene := flood.Scene{Holders: s.Members, Model: true, Magnitudes: s.Program.Magnitudes()}
		if bits, err = flood.Check(full, s.Plan, scene); err != nil {
			return nil, bits, &session.Refusal{Reason: channel.BadRequest, Text: err.Error()}
		}
	}
	return full, bits, nil
}

// nothing is sent for a node by who sent all, or has nothing to send.
func nothing() error { return nil }

// sender encrypts the parts of a model under the cohort's key and sends them.
func sender(c *channel.Channel, s *Setup, key *rlwe.PublicKey) session.Sender {
	seal := func(pt *rlwe.Plaintext) ([]byte, error) {
		ct, err := rlwe.NewEncryptor(s.Params, key).EncryptNew(pt)
		if err != nil {
			return nil, err
		}
		return wire.AppendPolys(nil, s.Params, ct.Level(), ct.Value[0], ct.Value[1]), nil
	}
	return session.Sender{Params: s.Params, Batch: s.Plan.Batch, Channel: c, Seal: seal}
}

// receiver takes over the parts of a model from its owner.
func receiver(c *channel.Channel, s *Setup) session.Taker {
	next := func(level int) (*rlwe.Ciphertext, error) {
		return session.ReceiveResult(c, "a ciphertext", s.Params, level)
	}
	return session.Taker{Params: s.Params, Batch: s.Plan.Batch, Channel: c, Next: next}
}
